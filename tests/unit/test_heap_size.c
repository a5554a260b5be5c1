/* The size of the heap and its peak: exact in any order of events, whoever has them, and right in the sum
 * where they come at the same time. */
#include "check.h"
#include "core/heap_size.h"
#include "core/sampler.h"
#include "core/thread_table.h"
#include "recording_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

static struct recording *start(void) {
    struct recording *recording = fixture_recording(8 << 20);
    thread_table_start(recording);
    return recording;
}

static struct thread_record *new_thread(struct recording *recording) {
    return thread_table_get(recording, thread_table_register(recording, 1, 0));
}

static uint64_t next(uint64_t random[4], uint64_t below) {
    return sampler_random_next(random) % below;
}

/* ---- one after another ---- */

enum { THREADS = 70, STEPS = 400000 }; /* more threads than may have slack */

/* Blocks of up to `block` bytes; above `most` the heap shrinks. */
static void check_sequence(uint64_t seed, uint64_t block, uint64_t most) {
    struct recording *recording = start();
    struct thread_record *threads[THREADS] = {NULL};
    for (int i = 1; i < THREADS; i++)
        threads[i] = new_thread(recording); /* the first is one without a record */
    uint64_t random[4], live = 0, peak = 0, wrong_size = 0, wrong_peak = 0, too_small = 0, most_said = 0;
    sampler_random_seed(random, seed);
    for (int step = 0; step < STEPS; step++) {
        uint64_t who = next(random, 3) ? next(random, 4) : next(random, THREADS);
        uint64_t bytes = (1 + next(random, block)) * BYTE_ONE;
        bool shrinks = live >= bytes && (live > most * BYTE_ONE || next(random, 2));
        if (shrinks) {
            heap_size_shrink(recording, threads[who], bytes, 0, false);
            live -= bytes;
        } else {
            live += bytes;
            if (live > peak) peak = live;
            uint64_t said = heap_size_grow(recording, threads[who], bytes, (uint64_t)step, false);
            too_small += (said ? said : most_said) < live;
            if (said) most_said = recording->header->live_bytes;
        }
        wrong_size += heap_size(recording) != live;
        wrong_peak += recording->header->peak_bytes != peak;
    }
    CHECK_EQUAL(wrong_size, 0);
    CHECK_EQUAL(wrong_peak, 0);
    CHECK_EQUAL(too_small, 0);
    uint64_t with_slack = 0;
    for (int i = 1; i < THREADS; i++) with_slack += (threads[i]->slack & SLACK_MASK) > 0;
    CHECK(with_slack > 0); /* it was put to the test */
    for (int i = 1; i < THREADS; i++) thread_table_end(recording, threads[i], 0);
    CHECK_EQUAL(recording->header->live_bytes, live);
    fixture_free(recording);
}

/* A new epoch begins only at a new peak: stacks keep their figures of the last one. */
static void check_epochs(void) {
    struct recording *recording = start();
    struct thread_record *one = new_thread(recording), *two = new_thread(recording);
    heap_size_grow(recording, one, 1000 * BYTE_ONE, 1, false);
    heap_size_grow(recording, two, 500 * BYTE_ONE, 2, false);
    CHECK_EQUAL(recording->header->peak_epoch, 2);
    heap_size_shrink(recording, one, 0, 0, false); /* no new peak: now there may be slack */
    heap_size_shrink(recording, one, 300 * BYTE_ONE, 0, false);
    CHECK_EQUAL(one->slack & SLACK_MASK, 300 * BYTE_ONE);
    heap_size_grow(recording, two, 200 * BYTE_ONE, 3, false);
    CHECK_EQUAL(recording->header->peak_epoch, 2);
    CHECK_EQUAL(recording->header->peak_bytes, 1500 * BYTE_ONE);
    heap_size_grow(recording, one, 100 * BYTE_ONE, 4, false); /* as large as at the peak, not larger */
    CHECK_EQUAL(recording->header->peak_epoch, 2);
    heap_size_grow(recording, one, 1 * BYTE_ONE, 5, false);
    CHECK_EQUAL(recording->header->peak_epoch, 3);
    CHECK_EQUAL(recording->header->peak_time, 5);
    CHECK_EQUAL(recording->header->peak_bytes, 1501 * BYTE_ONE);
    fixture_free(recording);
}

/* A program with one thread has no slack, and does not pay for it. */
static void check_alone(void) {
    struct recording *recording = start();
    struct thread_record *thread = new_thread(recording);
    CHECK_EQUAL(heap_size_grow(recording, thread, 700, 1, true), 700);
    heap_size_shrink(recording, thread, 300, 0, true);
    CHECK_EQUAL(heap_size_grow(recording, thread, 100, 2, true), 500);
    CHECK_EQUAL(recording->header->live_bytes, 500);
    CHECK_EQUAL(recording->header->peak_bytes, 700);
    CHECK_EQUAL(thread->slack, 0);
    fixture_free(recording);
}

/* ---- at the same time ---- */

enum { WORKERS = 8, EVENTS = 300000 };
static struct recording *shared;

struct worker {
    struct thread_record *thread;
    uint64_t seed, live, most;
};

static void *work(void *argument) {
    struct worker *worker = argument;
    uint64_t random[4];
    sampler_random_seed(random, worker->seed);
    for (int i = 0; i < EVENTS; i++) {
        uint64_t bytes = (1 + next(random, 900)) * BYTE_ONE;
        if (worker->live >= bytes && next(random, 2)) {
            worker->live -= bytes;
            heap_size_shrink(shared, worker->thread, bytes, 0, false);
        } else {
            worker->live += bytes;
            if (worker->live > worker->most) worker->most = worker->live;
            heap_size_grow(shared, worker->thread, bytes, 1, false);
        }
    }
    return NULL;
}

static void check_threads(void) {
    shared = start();
    pthread_t thread[WORKERS];
    struct worker worker[WORKERS];
    uint64_t live = 0, most = 0, largest = 0;
    for (int i = 0; i < WORKERS; i++) {
        worker[i] = (struct worker){.thread = new_thread(shared), .seed = (uint64_t)i + 1};
        pthread_create(&thread[i], NULL, work, &worker[i]);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(thread[i], NULL);
        live += worker[i].live;
        most += worker[i].most;
        if (worker[i].most > largest) largest = worker[i].most;
    }
    CHECK_EQUAL(heap_size(shared), live);
    CHECK(shared->header->peak_bytes <= most); /* no peak that never was */
    CHECK(shared->header->peak_bytes >= largest && shared->header->peak_bytes >= live);
    fixture_free(shared);
}

/* Never more than the budget is live, and often all of it: what is noted must not be more, nor much less. */
enum { BUDGET = 20000, SHARE = 900 };
static _Atomic int64_t budget;

static void *work_within_budget(void *argument) {
    struct worker *worker = argument;
    uint64_t random[4];
    sampler_random_seed(random, worker->seed);
    for (int i = 0; i < EVENTS; i++) {
        int64_t bytes = 1 + (int64_t)next(random, SHARE);
        if (worker->live >= (uint64_t)bytes && next(random, 5) < 2) {
            worker->live -= (uint64_t)bytes;
            heap_size_shrink(shared, worker->thread, (uint64_t)bytes * BYTE_ONE, 1, false);
            atomic_fetch_add(&budget, bytes);
        } else if (atomic_fetch_sub(&budget, bytes) >= bytes) {
            worker->live += (uint64_t)bytes;
            heap_size_grow(shared, worker->thread, (uint64_t)bytes * BYTE_ONE, 1, false);
        } else {
            atomic_fetch_add(&budget, bytes);
        }
    }
    return NULL;
}

static void check_budget(void) {
    shared = start();
    pthread_t thread[WORKERS];
    struct worker worker[WORKERS];
    atomic_store(&budget, BUDGET);
    for (int i = 0; i < WORKERS; i++) {
        worker[i] = (struct worker){.thread = new_thread(shared), .seed = (uint64_t)i + 1};
        pthread_create(&thread[i], NULL, work_within_budget, &worker[i]);
    }
    for (int i = 0; i < WORKERS; i++) pthread_join(thread[i], NULL);
    CHECK(shared->header->peak_bytes <= BUDGET * BYTE_ONE);
    CHECK(shared->header->peak_bytes > (BUDGET - SHARE) * BYTE_ONE);
    fixture_free(shared);
}

/* ---- a signal handler in the middle of it ---- */

static struct thread_record *interrupted;
static volatile sig_atomic_t handled;

static void have_events(int signal) {
    (void)signal;
    heap_size_grow(shared, interrupted, 77 * BYTE_ONE, 1, false);
    heap_size_shrink(shared, interrupted, 70 * BYTE_ONE, 0, false);
    handled = handled + 1;
}

static void check_handlers(void) {
    shared = start();
    interrupted = new_thread(shared);
    struct sigaction action = {.sa_handler = have_events};
    struct itimerval often = {{0, 50}, {0, 50}};
    uint64_t random[4], live = 0;
    sampler_random_seed(random, 7);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (uint64_t i = 0; handled < 2000; i++) {
        uint64_t bytes = (1 + next(random, 3000)) * BYTE_ONE;
        bool shrinks = live >= bytes && next(random, 2);
        if (shrinks)
            heap_size_shrink(shared, interrupted, bytes, 0, false);
        else
            heap_size_grow(shared, interrupted, bytes, 1, false);
        live += shrinks ? -bytes : bytes;
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    CHECK_EQUAL(heap_size(shared), live + (uint64_t)handled * 7 * BYTE_ONE);
    fixture_free(shared);
}

int main(void) {
    check_alone();
    check_epochs();
    check_sequence(1, 200, 20000);
    check_sequence(2, 5000, 100000);
    check_sequence(3, 40, 1 << 30); /* grows for ever */
    check_sequence(4, 900, 3000);   /* always near its peak */
    check_threads();
    check_budget();
    check_handlers();
    return check_result();
}
