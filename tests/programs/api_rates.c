/* api_rates [CHILD]: allocates under one sampling rate after the other, and frees half of it under other
 * rates. Prints how much it has allocated and what is left of that. With CHILD a child frees all the rest. */
#include "ledger.h"
#include "malloscope.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PHASES 24
#define BLOCKS 2000

static void *blocks[PHASES][BLOCKS];
static uint64_t total, live;

static size_t size_of(int i) {
    return 40 + (size_t)(i * 7919 % 997) + (i % 100 == 0 ? 30000 : 0);
}

static void fill(int phase) {
    for (int i = 0; i < BLOCKS; i++) {
        blocks[phase][i] = malloc(size_of(i)); /* @site fill */
        REQUIRE(blocks[phase][i]);
        if (i % 3 == 0) MSCOPE_TYPE(blocks[phase][i], "third");
        total += size_of(i), live += size_of(i);
    }
}

static void release(int phase, int from, int step) {
    for (int i = from; i < BLOCKS; i += step) {
        free(blocks[phase][i]);
        blocks[phase][i] = NULL;
        live -= size_of(i);
    }
}

int main(int argc, char **argv) {
    (void)argv;
    static const uint64_t rates[] = {1 << 10, 64 << 10, 4 << 10, 256 << 10, 16 << 10};
    for (int phase = 0; phase < PHASES; phase++) {
        uint64_t rate = rates[phase % 5];
        mscope_result result = mscope_set_rate(rate);
        struct mscope_stats stats = {.size = sizeof stats};
        if (mscope_stats(&stats) == MSCOPE_OK && stats.rate == 1)
            REQUIRE(result == MSCOPE_BAD_STATE && mscope_set_rate(1) == MSCOPE_OK);
        else
            REQUIRE(result == MSCOPE_OK && stats.rate == rate && mscope_set_rate(1) == MSCOPE_BAD_ARGUMENT);
        fill(phase);
        if (phase > 1) release(phase - 2, 0, 2);
    }
    if (argc > 1) {
        fflush(stdout);
        if (fork() == 0) {
            for (int phase = 0; phase < PHASES; phase++) release(phase, 0, 1);
            exit(0);
        }
        int status;
        wait(&status);
        REQUIRE(status == 0);
        for (int phase = 0; phase < PHASES; phase++) release(phase, 0, 1);
    }
    printf("{\"total\": %llu, \"live\": %llu}\n", (unsigned long long)total, (unsigned long long)live);
    return 0;
}
