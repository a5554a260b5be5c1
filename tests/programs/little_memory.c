/* Allocates 20 MB at every offset within a page, where address space for 30 MB is left. Prints how often that
 * failed. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static size_t address_space(void) {
    char line[200];
    size_t kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmSize: %zu", &kilobytes) == 1) break;
    if (file) fclose(file);
    return kilobytes << 10;
}

int main(void) {
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 0);
    mallopt(M_TOP_PAD, 0);
    free(malloc(1000));
    struct rlimit limit = {address_space() + (30 << 20), RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    int failed = 0;
    for (size_t i = 0; i < 512; i++) {
        void *volatile before = malloc(16 * (i % 256) + 2000), *volatile large = malloc(20 << 20);
        failed += !large;
        free(large);
        free(before);
    }
    printf("%d\n", failed);
    return 0;
}
