/* The register: what was put in is found, once, whatever other threads do at the same time. */
#include "address_space.h"
#include "check.h"

#define MSCOPE_LINKED
#include "malloscope.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>

static const void *at(uint64_t address) {
    return (const void *)address;
}

static bool holds(struct mscope_register *reg, uint64_t address, size_t size, uint64_t context) {
    struct mscope_registered found;
    return mscope_register_find(reg, at(address), &found) == MSCOPE_OK && found.address == at(address) &&
           found.size == size && found.context == context;
}

static void check_basics(void) {
    struct mscope_register *reg = mscope_register_new(0);
    struct mscope_registered removed;
    errno = 77;
    CHECK_EQUAL(mscope_register_find(reg, at(16), NULL), MSCOPE_UNKNOWN);
    CHECK_EQUAL(mscope_register_remove(reg, at(16), NULL), MSCOPE_UNKNOWN);
    CHECK_EQUAL(mscope_register_set_context(reg, at(16), 1), MSCOPE_UNKNOWN);

    CHECK_EQUAL(mscope_register_insert(reg, at(16), 100, 1), MSCOPE_OK);
    CHECK(holds(reg, 16, 100, 1));
    CHECK_EQUAL(mscope_register_insert(reg, at(16), 200, 2), MSCOPE_OK);
    CHECK(holds(reg, 16, 200, 2));
    CHECK_EQUAL(mscope_register_count(reg), 1);
    CHECK_EQUAL(mscope_register_set_context(reg, at(16), 3), MSCOPE_OK);
    CHECK(holds(reg, 16, 200, 3));
    CHECK_EQUAL(mscope_register_remove(reg, at(16), &removed), MSCOPE_OK);
    CHECK(removed.address == at(16) && removed.size == 200 && removed.context == 3);
    CHECK_EQUAL(mscope_register_remove(reg, at(16), &removed), MSCOPE_UNKNOWN);
    CHECK_EQUAL(mscope_register_count(reg), 0);

    /* No address is special. */
    const uint64_t unusual[] = {0, 1, UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63};
    for (size_t i = 0; i < 5; i++)
        CHECK_EQUAL(mscope_register_insert(reg, at(unusual[i]), i, i + 1), MSCOPE_OK);
    for (size_t i = 0; i < 5; i++) CHECK(holds(reg, unusual[i], i, i + 1));
    CHECK_EQUAL(mscope_register_count(reg), 5);
    CHECK_EQUAL(errno, 77);
    mscope_register_free(reg);
    mscope_register_free(NULL);

    CHECK_EQUAL(mscope_register_insert(NULL, at(16), 1, 1), MSCOPE_BAD_ARGUMENT);
    CHECK_EQUAL(mscope_register_find(NULL, at(16), NULL), MSCOPE_BAD_ARGUMENT);
    CHECK_EQUAL(mscope_register_remove(NULL, at(16), NULL), MSCOPE_BAD_ARGUMENT);
    CHECK_EQUAL(mscope_register_set_context(NULL, at(16), 1), MSCOPE_BAD_ARGUMENT);
    CHECK_EQUAL(mscope_register_each(NULL, NULL, NULL), MSCOPE_BAD_ARGUMENT);
    CHECK_EQUAL(mscope_register_count(NULL) + mscope_register_overhead(NULL), 0);
}

static void check_capacity(void) {
    struct mscope_register *reg = mscope_register_new(3);
    for (uint64_t i = 1; i <= 3; i++) CHECK_EQUAL(mscope_register_insert(reg, at(i), i, i), MSCOPE_OK);
    CHECK_EQUAL(mscope_register_insert(reg, at(4), 4, 4), MSCOPE_FULL);
    CHECK_EQUAL(mscope_register_find(reg, at(4), NULL), MSCOPE_UNKNOWN);
    /* Addresses that are in the register can still be changed. */
    CHECK_EQUAL(mscope_register_insert(reg, at(2), 22, 22), MSCOPE_OK);
    CHECK_EQUAL(mscope_register_set_context(reg, at(3), 33), MSCOPE_OK);
    CHECK(holds(reg, 2, 22, 22) && holds(reg, 3, 3, 33));
    CHECK_EQUAL(mscope_register_count(reg), 3);
    CHECK_EQUAL(mscope_register_remove(reg, at(1), NULL), MSCOPE_OK);
    CHECK_EQUAL(mscope_register_insert(reg, at(4), 4, 4), MSCOPE_OK);
    CHECK_EQUAL(mscope_register_insert(reg, at(1), 1, 1), MSCOPE_FULL);
    mscope_register_free(reg);
}

struct sum {
    uint64_t visits, contexts;
};

static void add(void *context, const struct mscope_registered *entry) {
    struct sum *sum = context;
    sum->visits++;
    sum->contexts += entry->context;
}

static void check_many(void) {
#if defined(__SANITIZE_THREAD__) /* which makes it slow, and finds nothing here: one thread is at work */
    const uint64_t many = 100000;
#else
    const uint64_t many = REPEAT(1000000);
#endif
    struct mscope_register *reg = mscope_register_new(0);
    uint64_t wrong = 0, expected = 0;
    for (uint64_t i = 1; i <= many; i++) wrong += mscope_register_insert(reg, at(i * 16), i, i) != MSCOPE_OK;
    CHECK_EQUAL(wrong, 0);
    CHECK_EQUAL(mscope_register_count(reg), many);
    size_t overhead = mscope_register_overhead(reg);
    CHECK(overhead >= many * sizeof(struct mscope_registered) && overhead < 200 * many);
    for (uint64_t i = 1; i <= many; i += 2)
        wrong += mscope_register_remove(reg, at(i * 16), NULL) != MSCOPE_OK;
    for (uint64_t i = 2; i <= many; i += 4) /* all of them even */
        wrong += mscope_register_set_context(reg, at(i * 16), 7) != MSCOPE_OK;
    for (uint64_t i = 1; i <= many; i++) {
        wrong += holds(reg, i * 16, i, i % 4 == 2 ? 7 : i) != (i % 2 == 0);
        if (i % 2 == 0) expected += i % 4 == 2 ? 7 : i;
    }
    CHECK_EQUAL(wrong, 0);
    struct sum sum = {0};
    CHECK_EQUAL(mscope_register_each(reg, add, &sum), MSCOPE_OK);
    CHECK_EQUAL(sum.visits, many / 2);
    CHECK_EQUAL(sum.contexts, expected);

    /* What comes and goes takes no more memory than what was there at once. */
    for (uint64_t round = 1; round <= 4; round++)
        for (uint64_t i = 0; i < many / 2; i++) {
            uint64_t address = (round * many + i) * 16;
            wrong += mscope_register_insert(reg, at(address), i, i) != MSCOPE_OK;
            wrong += mscope_register_remove(reg, at(address), NULL) != MSCOPE_OK;
        }
    CHECK_EQUAL(wrong, 0);
    CHECK(mscope_register_overhead(reg) <= 2 * overhead);
    mscope_register_free(reg);
}

/* `visit` may change the register: here it takes out what it sees, and puts something else in. */
static void replace(void *context, const struct mscope_registered *entry) {
    struct mscope_register *reg = context;
    uint64_t address = (uintptr_t)entry->address;
    if (address >= 1 << 20) return;
    CHECK_EQUAL(mscope_register_remove(reg, entry->address, NULL), MSCOPE_OK);
    CHECK_EQUAL(mscope_register_insert(reg, at(address << 20), entry->size, 0), MSCOPE_OK);
}

static void check_changes_by_visit(void) {
    struct mscope_register *reg = mscope_register_new(0);
    for (uint64_t i = 1; i <= 10000; i++) mscope_register_insert(reg, at(i), i, i);
    CHECK_EQUAL(mscope_register_each(reg, replace, reg), MSCOPE_OK);
    CHECK_EQUAL(mscope_register_count(reg), 10000);
    for (uint64_t i = 1; i <= 10000; i++) CHECK(holds(reg, i << 20, i, 0));
    mscope_register_free(reg);
}

/* ---- threads ---- */

#define THREADS 4
#define KEPT    5000 /* addresses that stay while others come and go */

static struct mscope_register *shared;
static _Atomic uint64_t inserted, removed, failures;
static atomic_bool done;

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* Addresses of its own, next to those of the others: nobody may disturb them. */
static void *churn_own(void *argument) {
    uint64_t self = (uintptr_t)argument, state = self + 1, wrong = 0;
    bool *there = calloc(1000, 1);
    for (int i = 0; i < REPEAT(200000); i++) {
        uint64_t number = next(&state) % 1000, address = (1 << 24) + number * THREADS + self;
        struct mscope_registered entry;
        mscope_result expected = there[number] ? MSCOPE_OK : MSCOPE_UNKNOWN;
        if (state >> 60 < 8) {
            wrong += mscope_register_remove(shared, at(address), &entry) != expected;
            wrong += there[number] && entry.size != address * 2;
            there[number] = false;
        } else if (state >> 60 < 12) {
            wrong += mscope_register_find(shared, at(address), &entry) != expected;
            wrong += there[number] && entry.size != address * 2;
        } else {
            wrong += mscope_register_insert(shared, at(address), address * 2, self) != MSCOPE_OK;
            there[number] = true;
        }
    }
    for (uint64_t number = 0; number < 1000; number++)
        if (there[number])
            wrong +=
                mscope_register_remove(shared, at((1 << 24) + number * THREADS + self), NULL) != MSCOPE_OK;
    free(there);
    atomic_fetch_add(&failures, wrong);
    return NULL;
}

/* A few addresses that all threads insert, change and remove: every entry that is read is a whole one, and
 * nothing is removed that was not inserted. */
static void *churn_common(void *argument) {
    uint64_t state = (uintptr_t)argument + 99, wrong = 0, in = 0, out = 0;
    for (int i = 0; i < REPEAT(200000); i++) {
        uint64_t address = (1 << 28) + next(&state) % 8, context = state >> 8;
        struct mscope_registered entry = {.address = at(address)};
        mscope_result result = MSCOPE_OK;
        switch (state >> 61) {
        case 0:
        case 1:
        case 2: /* size and context belong together; the address gets a new one if it is there */
            result = mscope_register_insert(shared, at(address), context ^ address, context);
            wrong += result != MSCOPE_OK;
            in++;
            continue;
        case 3:
        case 4:
        case 5:
            result = mscope_register_remove(shared, at(address), &entry);
            out += result == MSCOPE_OK;
            break;
        default:
            result = mscope_register_find(shared, at(address), &entry);
        }
        wrong += result != MSCOPE_OK && result != MSCOPE_UNKNOWN;
        wrong += result == MSCOPE_OK && entry.size != (entry.context ^ address);
    }
    atomic_fetch_add(&failures, wrong);
    atomic_fetch_add(&inserted, in);
    atomic_fetch_add(&removed, out);
    return NULL;
}

static void note(void *context, const struct mscope_registered *entry) {
    uint8_t *seen = context;
    uint64_t address = (uintptr_t)entry->address;
    if (address <= KEPT) seen[address]++;
}

/* What stays is visited exactly once by every pass, though its context is changed under it. */
static void *walk(void *argument) {
    (void)argument;
    uint8_t *seen = calloc(KEPT + 1, 1);
    uint64_t wrong = 0, passes = 0;
    do {
        memset(seen, 0, KEPT + 1);
        wrong += mscope_register_each(shared, note, seen) != MSCOPE_OK;
        for (uint64_t i = 1; i <= KEPT; i++) wrong += seen[i] != 1;
        passes++;
    } while (!atomic_load(&done));
    free(seen);
    CHECK(passes > 0);
    atomic_fetch_add(&failures, wrong);
    return NULL;
}

static void *change_kept(void *argument) {
    uint64_t state = 12345, wrong = 0;
    (void)argument;
    while (!atomic_load(&done)) {
        uint64_t address = next(&state) % KEPT + 1;
        wrong += mscope_register_set_context(shared, at(address), state) != MSCOPE_OK;
    }
    atomic_fetch_add(&failures, wrong);
    return NULL;
}

static void check_threads(void) {
    shared = mscope_register_new(0);
    for (uint64_t i = 1; i <= KEPT; i++) mscope_register_insert(shared, at(i), i, 0);
    pthread_t workers[2 * THREADS], walker, changer;
    pthread_create(&walker, NULL, walk, NULL);
    pthread_create(&changer, NULL, change_kept, NULL);
    for (uintptr_t i = 0; i < 2 * THREADS; i++)
        pthread_create(&workers[i], NULL, i % 2 ? churn_own : churn_common, (void *)(i / 2));
    for (int i = 0; i < 2 * THREADS; i++) pthread_join(workers[i], NULL);
    atomic_store(&done, true);
    pthread_join(walker, NULL);
    pthread_join(changer, NULL);
    CHECK_EQUAL(failures, 0);

    uint64_t left = 0;
    for (uint64_t address = 1 << 28; address < (1 << 28) + 8; address++)
        left += mscope_register_remove(shared, at(address), NULL) == MSCOPE_OK;
    CHECK(inserted > 0 && removed > 0 && removed + left <= inserted && left <= 8);
    CHECK_EQUAL(mscope_register_count(shared), KEPT);
    for (uint64_t i = 1; i <= KEPT; i++) CHECK(mscope_register_find(shared, at(i), NULL) == MSCOPE_OK);
    mscope_register_free(shared);
}

/* All threads want the last places: exactly as many get one as there are. */
static void *fill_up(void *argument) {
    uint64_t self = (uintptr_t)argument, got = 0;
    for (uint64_t i = 0; i < 10000; i++)
        got += mscope_register_insert(shared, at(i * THREADS + self + 1), i, self) == MSCOPE_OK;
    atomic_fetch_add(&inserted, got);
    return NULL;
}

static void check_capacity_with_threads(void) {
    shared = mscope_register_new(12345);
    inserted = 0;
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, fill_up, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK_EQUAL(inserted, 12345);
    CHECK_EQUAL(mscope_register_count(shared), 12345);
    mscope_register_free(shared);
}

/* Without memory to grow it says so, and what is in it stays. */
static __attribute__((unused)) void check_no_memory(void) {
    struct mscope_register *reg = mscope_register_new(0);
    struct rlimit before, little = {.rlim_cur = 1 << 20, .rlim_max = RLIM_INFINITY};
    getrlimit(RLIMIT_AS, &before);
    little.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_AS, &little);
    if (address_space_is_used_up(1 << 20)) {
        uint64_t put = 0, wrong = 0;
        while (put < 1000000 && mscope_register_insert(reg, at(put + 1), put, put) == MSCOPE_OK) put++;
        CHECK(put >= 50 && put < 1000000); /* the first piece of nodes was there before the limit */
        CHECK_EQUAL(mscope_register_count(reg), put);
        for (uint64_t i = 0; i < put; i++) wrong += !holds(reg, i + 1, i, i);
        CHECK_EQUAL(wrong, 0);
        CHECK_EQUAL(mscope_register_remove(reg, at(1), NULL), MSCOPE_OK);
        CHECK_EQUAL(mscope_register_insert(reg, at(put + 9), 1, 1), MSCOPE_OK);
        CHECK(mscope_register_new(0) == NULL);
    }
    setrlimit(RLIMIT_AS, &before);
    CHECK_EQUAL(mscope_register_insert(reg, at(UINT64_C(1) << 40), 5, 6), MSCOPE_OK);
    CHECK(holds(reg, UINT64_C(1) << 40, 5, 6));
    mscope_register_free(reg);
}

int main(void) {
    check_basics();
    check_capacity();
    check_many();
    check_changes_by_visit();
    check_threads();
    check_capacity_with_threads();
#if !defined(__SANITIZE_THREAD__) &&                                                                         \
    !defined(__SANITIZE_ADDRESS__) /* which need address space themselves   \
                                                                     */
    check_no_memory();
#endif
    return check_result();
}
