/* big_heap GIB: fills a heap of GIB with small objects, all live and touched, and prints its resident KiB. */
#include "ledger.h"

#include <string.h>

static long resident(void) {
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1) break;
    fclose(status);
    return kib;
}

int main(int argc, char **argv) {
    REQUIRE(argc == 2);
    size_t wanted = (size_t)(atof(argv[1]) * (double)(1 << 30)), done = 0;
    long objects = 0;
    void **list = NULL;
    for (unsigned i = 0; done < wanted; i++) {
        size_t size = 40 + i * 2654435761u % 8 * 48;
        void **block = malloc(size); /* @site heap */
        *block = list;
        list = block;
        done += size;
        objects++;
    }
    ESCAPE(list);
    printf("{\"resident_kib\": %ld, \"bytes\": %zu, \"objects\": %ld}\n", resident(), done, objects);
    fflush(stdout);
    _Exit(0);
}
