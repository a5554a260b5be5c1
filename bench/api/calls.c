/* calls [stop]: what a call of the API costs, in ns: for each kind the least of many short rounds' means,
 * less that of the same loop without the call. `stop` stops the recorder first. With heaptrack's header, its
 * calls too. */
#include <malloscope.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef HAVE_HEAPTRACK
#define HEAPTRACK_API_DLSYM 1
#include <heaptrack_api.h>
#endif

#define ROUNDS 20000 /* short ones, so that most are not interrupted */
#define STEPS  256
#define GRAIN  1024

static char memory[STEPS * GRAIN];
static uint32_t sizes[STEPS];
static mscope_heap heap;
static char *block;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

#define USE(value) __asm__ volatile("" : : "r"(value) : "memory")

/* Each is a loop of its own, so that the compiler sees what a program would show it. */
#define LOOP(name, ...)                                                                                      \
    __attribute__((noinline)) static void name(void) {                                                       \
        for (uint32_t i = 0; i < STEPS; i++) {                                                               \
            char *address = memory + (size_t)i * GRAIN;                                                      \
            size_t size = sizes[i];                                                                          \
            USE(address);                                                                                    \
            USE(size);                                                                                       \
            __VA_ARGS__;                                                                                     \
        }                                                                                                    \
    }

LOOP(empty, (void)0)
LOOP(heap_alloc, mscope_heap_alloc(heap, address, size))
LOOP(heap_pair, mscope_heap_alloc(heap, address, size); USE(address); mscope_heap_free(heap, address))
LOOP(scope, MSCOPE_SCOPE("scope"); USE(address))
LOOP(scopes, MSCOPE_SCOPE("outer"); USE(address); MSCOPE_SCOPE("inner"); USE(address))
LOOP(by_name, mscope_scope_begin("scope"); USE(address); mscope_scope_end())
LOOP(type, USE(MSCOPE_TYPE(block, "type")))
LOOP(ignore, MSCOPE_IGNORE(); USE(address))

/* An arena is filled and goes back to its beginning. */
static void arena_round(void) {
    heap_alloc();
    mscope_heap_reset_range(heap, memory, memory + sizeof memory);
}

#ifdef HAVE_HEAPTRACK
LOOP(heaptrack_pair, heaptrack_report_alloc(address, size); USE(address); heaptrack_report_free(address))
#endif

static double least(void (*loop)(void)) {
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        loop();
        double mean = (now() - start) / STEPS;
        if (mean < least) least = mean;
    }
    return least;
}

static void measure(const char *name, void (*loop)(void)) {
    printf("%s %.3f\n", name, least(loop) - least(empty));
    fflush(stdout);
}

int main(int count, char **arguments) {
    uint64_t state = 1;
    for (uint32_t i = 0; i < STEPS; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        sizes[i] = 16 + (uint32_t)(state >> 33) % 1009; /* 16 to 1,024 bytes */
    }
    heap = mscope_heap_register("bench", NULL);
    block = malloc(64);
    if (count > 1 && strcmp(arguments[1], "stop") == 0 && mscope_stop() != MSCOPE_OK) return 1;
#ifdef HAVE_HEAPTRACK
    if (count > 1 && strcmp(arguments[1], "heaptrack") == 0) {
        measure("heaptrack_pair", heaptrack_pair);
        return 0;
    }
#endif
    measure("heap_alloc", heap_alloc);
    measure("heap_pair", heap_pair);
    measure("arena_round", arena_round);
    measure("scope", scope);
    measure("scopes", scopes);
    measure("by_name", by_name);
    measure("type", type);
    measure("ignore", ignore);
    return 0;
}
