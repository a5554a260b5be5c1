/* The ground truth that a test program keeps about itself: what each of its allocation sites allocated and
 * freed.
 *
 * A site is the source line that carries the comment `@site NAME`; the tests look the line up by that
 * comment. At the end the program prints its ledger as one JSON object, which the tests compare with the
 * recording. For C and C++; safe to use from several threads. */
#ifndef LEDGER_H
#define LEDGER_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct ledger_site {
    const char *name;
    long objects, bytes; /* ever allocated */
    long frees, freed_bytes;
    long peak_bytes;    /* largest number of live bytes */
    long at_peak_bytes; /* live bytes when ledger_at_peak was called */
    struct ledger_site *next;
};

struct ledger_note {
    const char *name;
    long value;
};

static struct ledger_site *ledger_sites;
static struct ledger_note ledger_notes[32];
static int ledger_note_count;

/* Declares a site and enters it into the ledger before main runs. */
#define LEDGER_SITE(site)                                                                                    \
    static struct ledger_site site = {#site, 0, 0, 0, 0, 0, 0, NULL};                                        \
    __attribute__((constructor)) static void ledger_enter_##site(void) {                                     \
        site.next = ledger_sites;                                                                            \
        ledger_sites = &site;                                                                                \
    }

/* Keeps the compiler from proving that a block is not used, and from dropping its allocation. */
#define ESCAPE(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                        \
            exit(99);                                                                                        \
        }                                                                                                    \
    } while (0)

static inline long ledger_add(long *counter, long value) {
    return __atomic_add_fetch(counter, value, __ATOMIC_SEQ_CST);
}

static inline long ledger_live(struct ledger_site *site) {
    return __atomic_load_n(&site->bytes, __ATOMIC_SEQ_CST) -
           __atomic_load_n(&site->freed_bytes, __ATOMIC_SEQ_CST);
}

static inline void ledger_allocated(struct ledger_site *site, size_t size) {
    ledger_add(&site->objects, 1);
    ledger_add(&site->bytes, (long)size);
    long live = ledger_live(site);
    long peak = __atomic_load_n(&site->peak_bytes, __ATOMIC_SEQ_CST);
    while (live > peak && !__atomic_compare_exchange_n(
                              &site->peak_bytes, &peak, live, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
}

static inline void ledger_freed(struct ledger_site *site, size_t size) {
    ledger_add(&site->frees, 1);
    ledger_add(&site->freed_bytes, (long)size);
}

/* Call when the program's heap is at its largest. */
static inline void ledger_at_peak(void) {
    for (struct ledger_site *site = ledger_sites; site; site = site->next)
        site->at_peak_bytes = ledger_live(site);
}

/* A figure of its own, not of a site. */
static inline void ledger_note(const char *name, long value) {
    REQUIRE(ledger_note_count < 32);
    ledger_notes[ledger_note_count].name = name;
    ledger_notes[ledger_note_count++].value = value;
}

static inline void ledger_print(void) {
    printf("{\"sites\": {");
    for (struct ledger_site *site = ledger_sites; site; site = site->next)
        printf(
            "%s\"%s\": {\"total_objects\": %ld, \"total_bytes\": %ld, \"frees\": %ld, \"live_objects\": %ld, "
            "\"live_bytes\": %ld, \"own_peak_at_most\": %ld, \"at_peak_bytes\": %ld}",
            site == ledger_sites ? "" : ", ", site->name, site->objects, site->bytes, site->frees,
            site->objects - site->frees, ledger_live(site), site->peak_bytes, site->at_peak_bytes);
    printf("}, \"notes\": {");
    for (int i = 0; i < ledger_note_count; i++)
        printf("%s\"%s\": %ld", i ? ", " : "", ledger_notes[i].name, ledger_notes[i].value);
    printf("}}\n");
    fflush(stdout);
}

#endif
