/* A mix of allocations from 16 B to 100 MiB at several sites, part of them freed again. What it does is the
 * same in every run; what differs from seed to seed is which allocations the recorder samples. */
#include "../programs/ledger.h"

#include <stdint.h>

LEDGER_SITE(tiny)
LEDGER_SITE(small)
LEDGER_SITE(medium)
LEDGER_SITE(pages)
LEDGER_SITE(large)
LEDGER_SITE(huge)
LEDGER_SITE(resized)

/* Calls that interleave: each site's turn comes as often as it takes to reach its number of blocks. */
#define ROUNDS 2000

int main(void) {
    uint64_t random = 1;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 250; i++) {
            void *block = malloc(16); /* @site tiny */
            ESCAPE(block);
            ledger_allocated(&tiny, 16);
            if (i % 2) {
                free(block);
                ledger_freed(&tiny, 16);
            }
        }
        for (int i = 0; i < 50; i++) {
            size_t size = 100 + (size_t)i * 4;
            void *block = malloc(size); /* @site small */
            ESCAPE(block);
            ledger_allocated(&small, size);
            if (i % 4) {
                free(block);
                ledger_freed(&small, size);
            }
        }
        for (int i = 0; i < 4; i++) {
            void *block = calloc(3, 1000); /* @site medium */
            ESCAPE(block);
            ledger_allocated(&medium, 3000);
            if (i) {
                free(block);
                ledger_freed(&medium, 3000);
            }
        }
        if (round % 2) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            size_t size = 4096 + (random >> 33) % 61440;
            void *block = malloc(size); /* @site pages */
            ESCAPE(block);
            ledger_allocated(&pages, size);
            if (round % 4 == 1) {
                free(block);
                ledger_freed(&pages, size);
            }
            void *other = malloc(1 + round % 50);
            other = realloc(other, 7000); /* @site resized */
            ESCAPE(other);
            ledger_allocated(&resized, 7000);
            if (round % 8 == 1) {
                free(other);
                ledger_freed(&resized, 7000);
            }
        }
        if (round % 10 == 0) {
            size_t size = 50000 + (size_t)round * 150;
            void *block = malloc(size); /* @site large */
            ESCAPE(block);
            ledger_allocated(&large, size);
            if (round % 20) {
                free(block);
                ledger_freed(&large, size);
            }
        }
        if (round % 500 == 0) {
            void *block = malloc((size_t)100 << 20); /* @site huge */
            ESCAPE(block);
            ledger_allocated(&huge, (size_t)100 << 20);
        }
    }
    ledger_print();
    return 0;
}
