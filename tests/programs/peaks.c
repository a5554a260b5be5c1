/* Peaks, the heap's composition at its largest, and lifetimes. */
#include "ledger.h"

#include <string.h>
#include <time.h>

LEDGER_SITE(rises)
LEDGER_SITE(early)
LEDGER_SITE(late)
LEDGER_SITE(steady)
LEDGER_SITE(short_lived)
LEDGER_SITE(long_lived)

#define MIB ((size_t)1 << 20)

static void wait_milliseconds(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

int main(void) {
    void *stays = malloc(3 * MIB); /* @site steady */
    ESCAPE(stays);
    ledger_allocated(&steady, 3 * MIB);

    /* 40 MiB early on, all gone before the heap is at its largest. */
    void *first[40];
    for (int i = 0; i < 40; i++) {
        first[i] = malloc(MIB); /* @site early */
        ledger_allocated(&early, MIB);
    }
    for (int i = 0; i < 35; i++) {
        free(first[i]);
        ledger_freed(&early, MIB);
    }

    /* Rises to 64 MiB, falls, and rises again to less. */
    void *wave[64];
    for (int i = 0; i < 64; i++) {
        wave[i] = malloc(MIB); /* @site rises */
        ledger_allocated(&rises, MIB);
        if (i == 63) ledger_at_peak();
        if (i == 63)
            for (int k = 0; k < 64; k++) {
                free(wave[k]);
                ledger_freed(&rises, MIB);
            }
    }
    for (int i = 0; i < 20; i++) {
        void *block = malloc(MIB); /* @site late */
        ESCAPE(block);
        ledger_allocated(&late, MIB);
    }
    for (int i = 35; i < 40; i++) {
        free(first[i]);
        ledger_freed(&early, MIB);
    }

    for (int i = 0; i < 1000; i++) {
        void *block = malloc(64); /* @site short_lived */
        ESCAPE(block);
        ledger_allocated(&short_lived, 64);
        free(block);
        ledger_freed(&short_lived, 64);
    }
    for (int i = 0; i < 20; i++) {
        void *block = malloc(64); /* @site long_lived */
        ESCAPE(block);
        ledger_allocated(&long_lived, 64);
        wait_milliseconds(2);
        free(block);
        ledger_freed(&long_lived, 64);
    }
    ledger_print();
    return 0;
}
