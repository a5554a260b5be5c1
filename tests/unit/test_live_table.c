/* The live table: a slot belongs to one owner at a time, whoever gives it back, and slots are used again. */
#include "check.h"
#include "core/events.h"
#include "core/live_table.h"
#include "core/sampler.h"
#include "recording_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

static uint32_t take(struct recording *recording, struct thread_record *thread, uint64_t address) {
    struct live_entry *entry = NULL;
    uint32_t slot = live_table_take(recording, thread, &entry);
    if (slot == LIVE_NONE) return slot;
    sample_store(
        &(struct sample){.size = address * 3, .birth = address * 5, .stack = (uint32_t)address}, entry);
    live_table_publish(entry, address);
    return slot;
}

/* The entry is as `take` left it; then it is given back. */
static bool gives(
    struct recording *recording, struct thread_record *thread, uint32_t slot, uint64_t address) {
    struct live_entry *entry = live_table_at_checked(recording, slot);
    bool whole = entry && live_table_address(entry) == address && entry->size == address * 3 &&
                 entry->birth == address * 5 && entry->stack == (uint32_t)address;
    live_table_withdraw(entry);
    live_table_give(recording, thread, slot);
    return whole;
}

static uint64_t live_count(struct recording *recording) {
    uint64_t live = 0;
    for (uint32_t slot = 0; slot < recording->header->live.count; slot++)
        live += live_table_address(live_table_at_checked(recording, slot)) != 0;
    return live;
}

enum { MANY = 100000 };
static uint32_t slots[MANY];

static void check_basics(void) {
    struct recording *recording = fixture_recording(64 << 20);
    static struct thread_record thread, other;
    live_table_start(recording);
    CHECK(live_table_at_checked(recording, 0) == NULL);
    for (uint64_t i = 0; i < MANY; i++) slots[i] = take(recording, &thread, i + 1);
    CHECK_EQUAL(live_count(recording), MANY);
    uint64_t made = recording->header->live.count;
    CHECK(made >= MANY && made < MANY + 64);
    uint64_t failed = 0;
    for (uint64_t i = 0; i < MANY; i++) failed += !gives(recording, &thread, slots[i], i + 1);
    CHECK_EQUAL(failed, 0);
    CHECK_EQUAL(live_count(recording), 0);
    CHECK(thread.spare_count <= 256);
    live_table_give_all(recording, &thread);
    CHECK_EQUAL(thread.spare, thread.spare & ~UINT64_C(0xffffffff));

    /* Another thread uses them again; a thread without a record gives them back. */
    for (uint64_t i = 0; i < MANY; i++) slots[i] = take(recording, &other, i + 1);
    CHECK_EQUAL(recording->header->live.count, made);
    for (uint64_t i = 0; i < MANY; i++) failed += !gives(recording, NULL, slots[i], i + 1);
    CHECK_EQUAL(failed, 0);
    for (uint64_t i = 0; i < MANY; i++) slots[i] = take(recording, &thread, i + 1);
    CHECK(recording->header->live.count <= made + 64);
    CHECK_EQUAL(live_count(recording), MANY);
    fixture_free(recording);
}

static void check_full(void) {
    struct recording *recording = fixture_recording(1 << 20);
    static struct thread_record thread;
    live_table_start(recording);
    uint32_t taken = 0, last = LIVE_NONE;
    for (uint32_t slot; (slot = take(recording, &thread, taken + 1)) != LIVE_NONE; taken++) last = slot;
    CHECK(taken > 8192 && taken <= (1 << 20) / sizeof(struct live_entry));
    CHECK(gives(recording, &thread, last, taken));
    CHECK_EQUAL(take(recording, &thread, 7), last);
    fixture_free(recording);
}

/* A child takes the table over: what is live keeps its slot, the rest is free. */
static void check_inheritance(void) {
    enum { PARENT = 1000 };
    static struct live_entry copy[PARENT];
    for (uint32_t i = 0; i < PARENT; i += 3)
        copy[i] =
            (struct live_entry){.key = i + 1, .size = (i + 1) * 3, .birth = (i + 1) * 5, .stack = i + 1};
    struct recording *recording = fixture_recording(64 << 20);
    static struct thread_record thread;
    live_table_start(recording);
    CHECK(live_table_inherit(recording, copy, PARENT));
    CHECK_EQUAL(live_count(recording), (PARENT + 2) / 3);
    for (uint64_t i = 0; i < PARENT; i++) slots[i] = take(recording, &thread, i + 5000);
    CHECK_EQUAL(live_count(recording), (PARENT + 2) / 3 + PARENT);
    uint64_t failed = 0;
    for (uint32_t i = 0; i < PARENT; i += 3) failed += !gives(recording, &thread, i, i + 1);
    for (uint64_t i = 0; i < PARENT; i++) failed += !gives(recording, &thread, slots[i], i + 5000);
    CHECK_EQUAL(failed, 0);
    fixture_free(recording);
}

/* ---- threads, some of whose slots are given back by others, and whose signal handlers take slots too ----
 */

enum { THREADS = 8, ROUNDS = REPEAT(200000), HELD = 500 };

static struct recording *shared;
static struct thread_record records[THREADS];
static _Atomic uint64_t mailbox[THREADS], failures, handled;
static __thread struct thread_record *own;

/* A slot and its address in a word. */
static uint64_t letter(uint32_t slot, uint64_t address) {
    return (uint64_t)slot << 32 | (uint32_t)address;
}
static bool answer(uint64_t message, struct thread_record *thread) {
    return gives(shared, thread, (uint32_t)(message >> 32), (uint32_t)message);
}

static void handle(int signal) {
    (void)signal;
    if (!own) return;
    uint32_t few[5];
    for (uint32_t i = 0; i < 5; i++) few[i] = take(shared, own, 0x70000000u + i);
    for (uint32_t i = 5; i-- > 0;) failures += !gives(shared, own, few[i], 0x70000000u + i);
    handled++;
}

static void *work(void *argument) {
    uint64_t number = (uint64_t)(uintptr_t)argument, state[4], held[HELD] = {0};
    struct thread_record *record = own = &records[number];
    sampler_random_seed(state, number);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t random = sampler_random_next(state), *place = &held[random % HELD];
        if (*place) {
            if (random >> 60 == 0) { /* give it away, and free what was given to us */
                uint64_t former = atomic_exchange(&mailbox[(number + 1) % THREADS], *place);
                if (former && !answer(former, record)) failures++;
            } else if (!answer(*place, random >> 58 == 5 ? NULL : record)) {
                failures++;
            }
            *place = 0;
        } else {
            uint64_t address = (number + 1) << 24 | (i & 0xffffff);
            uint32_t slot = take(shared, record, address);
            if (slot == LIVE_NONE)
                failures++;
            else
                *place = letter(slot, address);
        }
        uint64_t given = random >> 58 == 1 ? atomic_exchange(&mailbox[number], 0) : 0;
        if (given && !answer(given, record)) failures++;
    }
    for (int i = 0; i < HELD; i++)
        if (held[i] && !answer(held[i], record)) failures++;
    own = NULL;
    live_table_give_all(shared, record);
    return NULL;
}

static void check_threads(void) {
    shared = fixture_recording(64 << 20);
    live_table_start(shared);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = handle, .sa_flags = SA_RESTART}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 50}, {0, 50}}, NULL);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    sigset_t alarm; /* is for the threads that work */
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    for (int i = 0; i < THREADS; i++)
        if (mailbox[i] && !answer(mailbox[i], &records[0])) failures++;
    CHECK_EQUAL(failures, 0);
    CHECK_EQUAL(live_count(shared), 0);
    /* As many slots as were ever held at once, and those that threads keep in reserve. */
    CHECK(shared->header->live.count < THREADS * (HELD + 2 * 256 + 64) * 2);
    fprintf(stderr, "%lu slots for %d held, %lu signals\n", (unsigned long)shared->header->live.count,
        THREADS * HELD, (unsigned long)handled);
    CHECK(handled > 0);
    fixture_free(shared);
}

int main(void) {
    check_basics();
    check_full();
    check_inheritance();
    check_threads();
    return check_result();
}
