/* jit [FILE]: makes code as a JIT compiler would, lists it in /tmp/perf-PID.map, and allocates through it:
 *
 *     main -> run_generated -> generated outer -> generated inner -> malloc
 *
 * With FILE it makes that file, and waits until it is gone. Prints its process id. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 100, SIZE = 1000 };

typedef void *(*generated)(size_t);

static void *volatile kept;

static size_t generate(unsigned char *code, const void *target) {
#ifdef TRAMPOLINE /* sub $8,%rsp; mov $target,%rax; call *%rax; add $8,%rsp; ret */
    static const unsigned char head[] = {0x48, 0x83, 0xec, 0x08, 0x48, 0xb8};
    static const unsigned char tail[] = {0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3};
#else /* push %rbp; mov %rsp,%rbp; mov $target,%rax; call *%rax; nop; pop %rbp; ret */
    static const unsigned char head[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8};
    static const unsigned char tail[] = {0xff, 0xd0, 0x90, 0x5d, 0xc3};
#endif
    memcpy(code, head, sizeof head);
    memcpy(code + sizeof head, &target, sizeof target);
    memcpy(code + sizeof head + sizeof target, tail, sizeof tail);
    return sizeof head + sizeof target + sizeof tail;
}

static __attribute__((noinline)) void run_generated(generated outer) {
    for (int i = 0; i < CALLS; i++) kept = outer(SIZE); /* @site generated */
}

int main(int argc, char **argv) {
    unsigned char *code = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) return 1;
    unsigned char *inner = code + 4096, *outer = code + 8192;
    void *(*allocate)(size_t) = malloc;
    size_t inner_size = generate(inner, *(void **)&allocate), outer_size = generate(outer, inner);
    if (mprotect(code, 65536, PROT_READ | PROT_EXEC) != 0) return 1;

    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    if (!map) return 1;
    fprintf(map, "%lx %zx inner: of a script\n%lx %zx outer: of a script\n", (unsigned long)inner, inner_size,
        (unsigned long)outer, outer_size);
    fclose(map);

    generated run;
    memcpy(&run, &outer, sizeof run);
    run_generated(run);
    printf("%d\n", getpid());
    fflush(stdout);
    if (argc < 2) return 0;
    fclose(fopen(argv[1], "w"));
    struct timespec moment = {0, 10000000};
    while (access(argv[1], F_OK) == 0) nanosleep(&moment, NULL);
    return 0;
}
