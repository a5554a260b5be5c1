/* The live table: finds what is live, nothing else, after any amount of churn, from any number of threads.
 * With an argument it makes that many replacements of churn instead of two million. */
#include "check.h"
#include "core/live_table.h"
#include "core/sampler.h"
#include "recording_fixture.h"

#include <pthread.h>

static struct live_entry entry_of(uint64_t address) {
    return (struct live_entry){
        .size = address, .weight = ~address, .birth = address * 3, .stack = (uint32_t)address};
}

static bool removes(struct recording *recording, uint64_t address) {
    struct live_entry entry, expected = entry_of(address);
    return live_table_remove(recording, address, &entry) && memcmp(&entry, &expected, sizeof entry) == 0;
}

static bool inserts(struct recording *recording, uint64_t address) {
    struct live_entry entry = entry_of(address);
    struct live_entry former;
    return live_table_insert(recording, address, &entry, &former) == LIVE_INSERTED;
}

/* Buckets that a search for an absent address visits, on average: the price of a miss. */
static double miss_length(struct recording *recording) {
    struct table *table = &recording->header->live;
    double visited = 0, buckets = 0;
    for (uint64_t segment = 0; segment < table->count; segment++) {
        struct live_bucket *bucket = recording_at(recording, table->segment[segment]);
        uint64_t count = (uint64_t)table->first << segment;
        for (uint64_t home = 0; home < count; home++) {
            uint64_t at = home, length = 1;
            while (bucket[at].overflow && length < 16) at = (at + 1) & (count - 1), length++;
            visited += (double)length;
        }
        buckets += (double)count;
    }
    return visited / buckets;
}

static uint64_t overflow_sum(struct recording *recording) {
    struct table *table = &recording->header->live;
    uint64_t sum = 0;
    for (uint64_t segment = 0; segment < table->count; segment++) {
        struct live_bucket *bucket = recording_at(recording, table->segment[segment]);
        for (uint64_t i = 0; i < (uint64_t)table->first << segment; i++) sum += bucket[i].overflow;
    }
    return sum;
}

static void check_basics(void) {
    struct recording *recording = fixture_recording(64 << 20);
    live_table_start(recording, 64);
    struct live_entry entry;
    CHECK(!live_table_remove(recording, 0x1000, &entry));
    CHECK(inserts(recording, 0x1000));
    CHECK(removes(recording, 0x1000));
    CHECK(!live_table_remove(recording, 0x1000, &entry));
    CHECK(!inserts(recording, UINT64_C(1) << 48));

    /* Growth: far more than the first segment holds. */
    for (uint64_t i = 1; i <= 100000; i++)
        if (!CHECK(inserts(recording, i * 16))) break;
    CHECK(recording->header->live.count > 5);
    for (uint64_t i = 1; i <= 100000; i++)
        if (!CHECK(removes(recording, i * 16))) break;
    CHECK_EQUAL(overflow_sum(recording), 0);
    fixture_free(recording);
}

/* An address that is given out again without its free having been seen takes the place of its former entry.
 */
static void check_replacement(void) {
    struct recording *recording = fixture_recording(64 << 20);
    live_table_start(recording, 64);
    struct live_entry first = entry_of(1), second = entry_of(2), former;
    CHECK_EQUAL(live_table_insert(recording, 0x4560, &first, &former), LIVE_INSERTED);
    for (int i = 0; i < 100000; i++) live_table_insert(recording, 0x4560, &first, &former);
    CHECK_EQUAL(live_table_insert(recording, 0x4560, &second, &former), LIVE_REPLACED);
    CHECK(memcmp(&former, &first, sizeof former) == 0);
    CHECK_EQUAL(recording->header->live.count, 1);
    CHECK(live_table_remove(recording, 0x4560, &former) && memcmp(&former, &second, sizeof former) == 0);
    CHECK(!live_table_remove(recording, 0x4560, &former));
    CHECK_EQUAL(overflow_sum(recording), 0);
    fixture_free(recording);
}

/* A table that cannot grow refuses, and forgets nothing of what it has taken. */
static void check_full(void) {
    struct recording *recording = fixture_recording(1 << 20);
    live_table_start(recording, 64);
    uint64_t taken = 0;
    while (taken < 10000000 && inserts(recording, (taken + 1) * 16)) taken++;
    CHECK(taken > 64 * LIVE_SLOTS / 2 && taken < 10000000);
    uint64_t missing = 0;
    for (uint64_t i = 1; i <= taken; i++) missing += !removes(recording, i * 16);
    CHECK_EQUAL(missing, 0);
    CHECK_EQUAL(overflow_sum(recording), 0);
    CHECK(inserts(recording, 0x777770));
    fixture_free(recording);
}

/* Random replacement among `live` addresses: at the end a miss costs what it cost at the start. */
static void check_churn(uint64_t operations) {
    enum { LIVE = 2000 };
    struct recording *recording = fixture_recording(64 << 20);
    live_table_start(recording, 512);
    static uint64_t address[LIVE];
    uint64_t state[4], failed = 0;
    random_seed(state, 1);
    for (int i = 0; i < LIVE; i++) {
        address[i] = (random_next(state) >> 17 & ~UINT64_C(15)) | 16;
        failed += !inserts(recording, address[i]);
    }
    double at_start = miss_length(recording);
    for (uint64_t i = 0; i < operations; i++) {
        uint64_t random = random_next(state);
        uint64_t *slot = &address[random % LIVE];
        failed += !removes(recording, *slot);
        *slot = (random >> 17 & ~UINT64_C(15)) | 16;
        failed += !inserts(recording, *slot);
    }
    CHECK_EQUAL(failed, 0);
    CHECK(miss_length(recording) < at_start * 1.1);
    CHECK(recording->header->live.count <= 2);
    for (int i = 0; i < LIVE; i++) failed += !removes(recording, address[i]);
    CHECK_EQUAL(failed, 0);
    CHECK_EQUAL(overflow_sum(recording), 0);
    fprintf(stderr,
        "churn of %lu replacements: a miss visits %.3f buckets at the start, %.3f empty at the end\n",
        operations, at_start, miss_length(recording));
    fixture_free(recording);
}

/* ---- threads: each works on addresses of its own, some handed to the next one to be removed there ---- */

enum { THREADS = 8, ROUNDS = 200000, HELD = 500 };

static struct recording *shared;
static _Atomic uint64_t mailbox[THREADS], failures;

static void *work(void *argument) {
    uint64_t number = (uint64_t)(uintptr_t)argument, state[4], held[HELD] = {0};
    random_seed(state, number);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t random = random_next(state), *slot = &held[random % HELD];
        if (*slot) {
            if (random >> 60 == 0) { /* give it away, and free what was given to us */
                uint64_t other = atomic_exchange(&mailbox[(number + 1) % THREADS], *slot);
                if (other && !removes(shared, other)) failures++;
            } else if (!removes(shared, *slot)) {
                failures++;
            }
            *slot = 0;
        } else {
            uint64_t address = (number + 1) << 40 | i << 4; /* never used twice at a time */
            if (inserts(shared, address))
                *slot = address;
            else
                failures++;
        }
        uint64_t given = random >> 58 == 1 ? atomic_exchange(&mailbox[number], 0) : 0;
        if (given && !removes(shared, given)) failures++;
    }
    for (int i = 0; i < HELD; i++)
        if (held[i] && !removes(shared, held[i])) failures++;
    return NULL;
}

static void check_threads(void) {
    shared = fixture_recording(64 << 20);
    live_table_start(shared, 64);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        if (mailbox[i] && !removes(shared, mailbox[i])) failures++;
    CHECK_EQUAL(failures, 0);
    CHECK_EQUAL(overflow_sum(shared), 0);
    fixture_free(shared);
}

int main(int count, char **arguments) {
    check_basics();
    check_replacement();
    check_full();
    check_threads();
    check_churn(count > 1 ? strtoull(arguments[1], NULL, 10) : 2000000);
    return check_result();
}
