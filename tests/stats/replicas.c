/* The same allocations at 256 times 6 sites of which each has a function of its own, for estimates of the
 * same truth that are independent of each other: which blocks are sampled at one site says nothing about
 * another.
 *
 *     replicas DONE
 *
 * Four threads do a quarter of them each, in turns. Some blocks are kept, the others are freed by whichever
 * thread comes by next. Prints what each of the 256 did as a ledger, makes the file DONE and waits to be
 * killed. */
#include "../programs/ledger.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { REPLICAS = 256, THREADS = 4, TURNS = 40 };

LEDGER_SITE(tiny)
LEDGER_SITE(small)
LEDGER_SITE(medium)
LEDGER_SITE(pages)
LEDGER_SITE(resized)
LEDGER_SITE(certain)

struct replica {
    void (*tiny)(int turn);
    void (*small)(int turn);
    void (*medium)(int turn);
    void (*pages)(int turn);
    void (*resized)(int turn);
    void (*certain)(int turn);
};

/* Only the first replica keeps the ledger: all replicas allocate alike. */
static void account(struct ledger_site *site, int number, size_t size, int is_kept) {
    if (number != 0) return;
    ledger_allocated(site, size);
    if (!is_kept) ledger_freed(site, size);
}

/* What is resized is a site of its own. */
__attribute__((noinline)) static void *fresh(void) {
    void *block = malloc(50);
    ESCAPE(block);
    return block;
}

/* Frees what another thread left here. */
static void leave_to_others(void *block) {
    static _Atomic(void *) mailboxes[64];
    static atomic_uint next;
    free(atomic_exchange(&mailboxes[atomic_fetch_add(&next, 1) % 64], block));
}

static void finish(struct ledger_site *site, int number, void *block, size_t size, int is_kept) {
    ESCAPE(block);
    account(site, number, size, is_kept);
    if (!is_kept) leave_to_others(block);
}

#define SITE(name, number, count, size, is_kept, allocation)                                                 \
    __attribute__((noinline)) static void name##_##number(int turn) {                                        \
        for (int i = 0; i < (count); i++) {                                                                  \
            size_t bytes = (size);                                                                           \
            finish(&name, 0x##number, allocation, bytes, is_kept);                                           \
        }                                                                                                    \
        ESCAPE(turn);                                                                                        \
    }

#define REPLICA_SITES(number)                                                                                \
    SITE(tiny, number, 60, 64, i % 2, malloc(bytes))                                                         \
    SITE(small, number, 25, (size_t)(100 + 8 * i), i % 3 == 0, malloc(bytes))                                \
    SITE(medium, number, 10, 600, i % 3 == 0, calloc(3, bytes / 3))                                          \
    SITE(pages, number, 5, (size_t)(300 + 200 * i + 5 * turn), i % 2, malloc(bytes))                         \
    SITE(resized, number, 8, 700, i % 4 == 0, realloc(fresh(), bytes))                                       \
    SITE(certain, number, turn % 8 == 0, 65536, turn % 16 == 0, malloc(bytes))

#define REPLICA_ENTRY(number)                                                                                \
    {tiny_##number, small_##number, medium_##number, pages_##number, resized_##number, certain_##number},

#define DIGITS(each, high)                                                                                   \
    each(high##0) each(high##1) each(high##2) each(high##3) each(high##4) each(high##5) each(high##6)        \
        each(high##7) each(high##8) each(high##9) each(high##a) each(high##b) each(high##c) each(high##d)    \
            each(high##e) each(high##f)

#define NUMBERS(each)                                                                                        \
    DIGITS(each, 0)                                                                                          \
    DIGITS(each, 1)                                                                                          \
    DIGITS(each, 2)                                                                                          \
    DIGITS(each, 3)                                                                                          \
    DIGITS(each, 4)                                                                                          \
    DIGITS(each, 5)                                                                                          \
    DIGITS(each, 6)                                                                                          \
    DIGITS(each, 7)                                                                                          \
    DIGITS(each, 8)                                                                                          \
    DIGITS(each, 9)                                                                                          \
    DIGITS(each, a)                                                                                          \
    DIGITS(each, b) DIGITS(each, c) DIGITS(each, d) DIGITS(each, e) DIGITS(each, f)

NUMBERS(REPLICA_SITES)

static const struct replica replicas[REPLICAS] = {NUMBERS(REPLICA_ENTRY)};

static void *work(void *argument) {
    long first = (long)argument;
    for (int turn = 0; turn < TURNS; turn++) {
        for (long i = first; i < REPLICAS; i += THREADS) {
            const struct replica *replica = &replicas[i];
            replica->tiny(turn);
            replica->small(turn);
            replica->medium(turn);
            replica->pages(turn);
            replica->resized(turn);
            replica->certain(turn);
        }
    }
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[THREADS];
    REQUIRE(count == 2);
    for (long i = 0; i < THREADS; i++) REQUIRE(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (long i = 0; i < THREADS; i++) REQUIRE(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < 64; i++) leave_to_others(NULL);
    ledger_print();
    fflush(stdout);
    REQUIRE(symlink("done", arguments[1]) == 0);
    for (;;) pause();
}
