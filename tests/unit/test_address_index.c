/* The address index: finds what is live, nothing else, after any amount of churn, from any number of threads.
 * With an argument it makes that many replacements of churn instead of two million. */
#include "address_space.h"
#include "check.h"
#include "core/address_index.h"
#include "core/sampler.h"
#include "platform/system.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

static uint32_t slot_of(uint64_t address) {
    return (uint32_t)(address * 3 % 1000003);
}

static bool removes(struct address_index *index, uint64_t address) {
    return address_index_remove(index, address) == slot_of(address);
}

static bool inserts(struct address_index *index, uint64_t address) {
    uint32_t former;
    return address_index_insert(index, address, slot_of(address), &former) && former == INDEX_NONE;
}

/* Buckets that a search for an absent address visits, on average: the price of a miss. */
static double miss_length(struct address_index *index) {
    double visited = 0, buckets = 0;
    for (uint32_t segment = 0; segment < index->count; segment++) {
        struct index_bucket *bucket = index->segment[segment];
        uint64_t count = index->first << segment;
        for (uint64_t home = 0; home < count; home++) {
            uint64_t at = home, length = 1;
            while (bucket[at].overflow && length < 16) at = (at + 1) & (count - 1), length++;
            visited += (double)length;
        }
        buckets += (double)count;
    }
    return visited / buckets;
}

static uint64_t overflow_sum(struct address_index *index) {
    uint64_t sum = 0;
    for (uint32_t segment = 0; segment < index->count; segment++)
        for (uint64_t i = 0; i < index->first << segment; i++) sum += index->segment[segment][i].overflow;
    return sum;
}

static void check_basics(void) {
    struct address_index index = {.first = 64};
    CHECK_EQUAL(address_index_remove(&index, 0x1000), INDEX_NONE);
    CHECK(inserts(&index, 0x1000));
    CHECK(removes(&index, 0x1000));
    CHECK_EQUAL(address_index_remove(&index, 0x1000), INDEX_NONE);

    /* Growth: far more than the first segment holds. */
    for (uint64_t i = 1; i <= 100000; i++)
        if (!CHECK(inserts(&index, i * 16))) break;
    CHECK(index.count > 5);
    for (uint64_t i = 1; i <= 100000; i++)
        if (!CHECK(removes(&index, i * 16))) break;
    CHECK_EQUAL(overflow_sum(&index), 0);
    address_index_free(&index);
}

/* An address that is given out again without its free having been seen takes the place of its former entry.
 */
static void check_replacement(void) {
    struct address_index index = {.first = 64};
    uint32_t former;
    CHECK(address_index_insert(&index, 0x4560, 1, &former) && former == INDEX_NONE);
    for (uint32_t i = 2; i < 100000; i++)
        CHECK(address_index_insert(&index, 0x4560, i, &former) && former == i - 1);
    CHECK_EQUAL(index.count, 1);
    CHECK_EQUAL(address_index_remove(&index, 0x4560), 99999);
    CHECK_EQUAL(address_index_remove(&index, 0x4560), INDEX_NONE);
    CHECK_EQUAL(overflow_sum(&index), 0);
    address_index_free(&index);
}

/* An index that cannot grow refuses, and forgets nothing of what it has taken. */
static void check_full(void) {
    struct rlimit before, limit;
    getrlimit(RLIMIT_AS, &before);
    struct address_index index = {.first = 64};
    CHECK(inserts(&index, 16));
    limit = (struct rlimit){1, before.rlim_max}; /* no more memory from here on */
    setrlimit(RLIMIT_AS, &limit);
    if (!address_space_is_used_up(1)) {
        setrlimit(RLIMIT_AS, &before);
        address_index_free(&index);
        return;
    }
    uint64_t taken = 1;
    errno = 17;
    while (taken < 10000000 && inserts(&index, (taken + 1) * 16)) taken++;
    int error = errno;
    setrlimit(RLIMIT_AS, &before);
    CHECK_EQUAL(error, 17);
    CHECK(taken > 64 * INDEX_PLACES / 2 && taken <= 64 * INDEX_PLACES);
    uint64_t missing = 0;
    for (uint64_t i = 1; i <= taken; i++) missing += !removes(&index, i * 16);
    CHECK_EQUAL(missing, 0);
    CHECK_EQUAL(overflow_sum(&index), 0);
    CHECK(inserts(&index, 0x777770));
    address_index_free(&index);
}

/* Random replacement among `live` addresses: at the end a miss costs what it cost at the start. */
static void check_churn(uint64_t operations) {
    enum { LIVE = 2000 };
    struct address_index index = {.first = 512};
    static uint64_t address[LIVE];
    uint64_t state[4], failed = 0;
    sampler_random_seed(state, 1);
    for (int i = 0; i < LIVE; i++) {
        address[i] = (sampler_random_next(state) >> 17 & ~UINT64_C(15)) | 16;
        failed += !inserts(&index, address[i]);
    }
    double at_start = miss_length(&index);
    for (uint64_t i = 0; i < operations; i++) {
        uint64_t random = sampler_random_next(state);
        uint64_t *slot = &address[random % LIVE];
        failed += !removes(&index, *slot);
        *slot = (random >> 17 & ~UINT64_C(15)) | 16;
        failed += !inserts(&index, *slot);
    }
    CHECK_EQUAL(failed, 0);
    CHECK(miss_length(&index) < at_start * 1.1);
    CHECK(index.count <= 2);
    for (int i = 0; i < LIVE; i++) failed += !removes(&index, address[i]);
    CHECK_EQUAL(failed, 0);
    CHECK_EQUAL(overflow_sum(&index), 0);
    fprintf(stderr,
        "churn of %lu replacements: a miss visits %.3f buckets at the start, %.3f empty at the end\n",
        operations, at_start, miss_length(&index));
    address_index_free(&index);
}

/* ---- threads: each works on addresses of its own, some handed to the next one to be removed there ---- */

enum { THREADS = 8, ROUNDS = REPEAT(200000), HELD = 500 };

static struct address_index shared = {.first = 64};
static _Atomic uint64_t mailbox[THREADS], failures;

/* As before a sandbox: as many addresses as were reserved for find room without any system call. */
static void check_reserve(void) {
    struct address_index index = {.first = 64};
    uint32_t former, reserved = 20000, inserted = 0;
    address_index_reserve(&index, reserved);
    atomic_store(&system_calls_are_forbidden, true);
    while (inserted < 100 * reserved &&
           address_index_insert(&index, 16 * (uint64_t)(inserted + 1), inserted, &former))
        inserted++;
    atomic_store(&system_calls_are_forbidden, false);
    CHECK(inserted >= reserved && inserted < 20 * reserved);
    for (uint32_t i = 0; i < inserted; i++) CHECK(address_index_remove(&index, 16 * (uint64_t)(i + 1)) == i);
    address_index_free(&index);
}

static void *work(void *argument) {
    uint64_t number = (uint64_t)(uintptr_t)argument, state[4], held[HELD] = {0};
    sampler_random_seed(state, number);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t random = sampler_random_next(state), *slot = &held[random % HELD];
        if (*slot) {
            if (random >> 60 == 0) { /* give it away, and free what was given to us */
                uint64_t other = atomic_exchange(&mailbox[(number + 1) % THREADS], *slot);
                if (other && !removes(&shared, other)) failures++;
            } else if (!removes(&shared, *slot)) {
                failures++;
            }
            *slot = 0;
        } else {
            uint64_t address = (number + 1) << 40 | i << 4; /* never used twice at a time */
            if (inserts(&shared, address))
                *slot = address;
            else
                failures++;
        }
        uint64_t given = random >> 58 == 1 ? atomic_exchange(&mailbox[number], 0) : 0;
        if (given && !removes(&shared, given)) failures++;
    }
    for (int i = 0; i < HELD; i++)
        if (held[i] && !removes(&shared, held[i])) failures++;
    return NULL;
}

static void check_threads(void) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        if (mailbox[i] && !removes(&shared, mailbox[i])) failures++;
    CHECK_EQUAL(failures, 0);
    CHECK_EQUAL(overflow_sum(&shared), 0);
    address_index_free(&shared);
}

int main(int count, char **arguments) {
    check_basics();
    check_replacement();
    check_full();
    check_reserve();
    check_threads();
    check_churn(count > 1 ? strtoull(arguments[1], NULL, 10) : REPEAT(2000000));
    return check_result();
}
