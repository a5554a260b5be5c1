/* A program to attach to, which allocates and frees at a given pace.
 *
 * It says "ready", and for each line "RATE MILLISECONDS" that it reads it makes RATE pairs of malloc and free
 * a second for that time and prints one line: the pairs made, the processor time they took, the time that
 * passed (in nanoseconds). Each millisecond it makes that millisecond's pairs and sleeps for the rest; if it
 * cannot keep up it does not sleep. Only the pairs' processor time is counted: what sleeping costs would hide
 * a small difference.
 *
 * A block lives for LIVES pairs, and is allocated below DEPTH frames that have frame pointers, so that tools
 * which follow those see the same stack as tools which do not need them. Nothing else here allocates. */
#include <string.h>
#include <unistd.h>

#include "../workloads/clock.h"

#define DEPTH   12
#define LIVES   64u
#define PACE_NS 1000000u

static uint32_t sizes[SIZES];

static uint64_t nanoseconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void make_pairs(uint64_t first, uint64_t count) {
    static void *blocks[LIVES];
    for (uint64_t i = first; i < first + count; i++) {
        free(blocks[i % LIVES]);
        blocks[i % LIVES] = malloc(sizes[i % SIZES]);
        touch(blocks[i % LIVES]);
    }
}

static void run(uint64_t rate, uint64_t milliseconds) {
    static uint64_t made;
    uint64_t first = made, processor = 0;
    uint64_t begin = nanoseconds(CLOCK_MONOTONIC), end = begin + milliseconds * 1000000u, next = begin;
    for (uint64_t now = begin; now < end; now = nanoseconds(CLOCK_MONOTONIC)) {
        uint64_t before = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
        make_pairs(made, rate * PACE_NS / 1000000000u);
        processor += nanoseconds(CLOCK_THREAD_CPUTIME_ID) - before;
        made += rate * PACE_NS / 1000000000u;
        next += PACE_NS;
        struct timespec until = {
            .tv_sec = (time_t)(next / 1000000000u), .tv_nsec = (long)(next % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    char line[128];
    int length = snprintf(line, sizeof line, "%llu %llu %llu\n", (unsigned long long)(made - first),
        (unsigned long long)processor, (unsigned long long)(nanoseconds(CLOCK_MONOTONIC) - begin));
    if (write(STDOUT_FILENO, line, (size_t)length) != length) exit(1);
}

/* The difference keeps the compiler from turning the recursion into a loop. */
__attribute__((noinline, optimize("no-omit-frame-pointer", "no-optimize-sibling-calls"))) static int descend(
    int depth, uint64_t rate, uint64_t milliseconds) {
    if (depth == 0) {
        run(rate, milliseconds);
        return 0;
    }
    return 1 + descend(depth - 1, rate, milliseconds);
}

int main(void) {
    draw_sizes(sizes, 16, 1024, 1);
    char line[64];
    ssize_t length;
    if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
    while ((length = read(STDIN_FILENO, line, sizeof line - 1)) > 0) {
        line[length] = '\0';
        unsigned long long rate, milliseconds;
        if (sscanf(line, "%llu %llu", &rate, &milliseconds) != 2 || rate < 1000) return 2;
        if (descend(DEPTH, rate, milliseconds) != DEPTH) return 1;
    }
    return 0;
}
