#include "record/life/thread.h"

#include "core/live_table.h"
#include "core/sampler.h"
#include "core/timeline.h"
#include "platform/calls.h"
#include "platform/counter.h"
#include "record/api/scopes.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"
#include "record/sample/work.h"
#include "record/walkcache/walk_cache.h"

#include <pthread.h>
#include <sys/random.h>

#define KEYS_WITHOUT_HEAP 32u /* pthread_setspecific allocates nothing for the first 32 keys */

static struct {
    pthread_key_t key; /* its destructor is called when a thread ends */
    bool has_key;
    _Atomic uint64_t seeds_given; /* to threads, if the recorder has a seed */
} state;

void thread_note_name(struct thread_record *record) {
    call_prctl(PR_GET_NAME, (uintptr_t)record->name);
}

/* The seed does not follow from the number of the thread's record. A thread that ends without a sample passes its
 * record on, and the next thread would draw the same interval again. Relaxed: all that counts is that no two threads
 * get one number. */
void thread_seed(uint64_t random[4]) {
    uint64_t order = atomic_fetch_add_explicit(&state.seeds_given, 1, memory_order_relaxed);
    uint64_t seed = recorder.seed + order * UINT64_C(0x632be59bd9b4e019);
    if (!recorder.seed && call_getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
        seed = clock_now() ^ (uintptr_t)random ^ (order << 40) ^ thread_pointer();
    sampler_random_seed(random, seed);
}

static bool register_thread(void) {
    struct recording *recording = &recorder.recording;
    int32_t tid = system_calls_allowed() ? (int32_t)call_gettid() : 0;
    uint32_t number = thread_table_register(recording, tid, clock_now());
    if (number == UINT32_MAX) {
        recorder_drop(DROP_THREAD);
        recorder_countdown = recorder.exact ? 0 : recorder.rate * 1024; /* then the thread tries again */
        return false;
    }
    struct thread_record *record = thread_table_get(recording, number);
    record->moment = UINT64_MAX; /* no bucket of the timeline yet */
    record->countdown_address = (uintptr_t)&recorder_countdown;
    thread_seed(record->random);
    counter_store(&record->interval, recorder_early_interval);
    recorder_early_interval = 0;
    thread_note_name(record);
    recorder_thread = record;
    if (state.has_key) pthread_setspecific(state.key, record);
    return true;
}

__attribute__((noinline, cold)) bool thread_begin(size_t size) {
    if (register_thread()) return true;
    /* Relaxed: a sum. */
    atomic_fetch_add_explicit(&recorder.recording.header->orphan_bytes, size, memory_order_relaxed);
    return false;
}

void thread_flush(struct thread_record *record) {
    if (recorder.exact) return;
    counter_add_own(&record->bytes, counter_load(&record->interval) - recorder_countdown);
    counter_store(&record->interval, recorder_countdown);
}

static void end_thread(void *value) {
    struct thread_record *record = value;
    if (!recorder_is_recording() || record != recorder_thread) return;
    RECORDER_WORKS;
    thread_note_name(record);
    thread_flush(record);
    timeline_flush(&recorder.recording, record);
    live_table_give_all(&recorder.recording, record);
    walk_cache_free();
    scopes_free();
    recorder_thread = NULL;
    recorder_countdown =
        0; /* an allocation in a destructor that runs later gives the thread a record again */
    thread_table_end(&recorder.recording, record, clock_now());
}

void thread_start(void) {
    if (pthread_key_create(&state.key, end_thread) != 0) return;
    state.has_key = state.key < KEYS_WITHOUT_HEAP;
    if (!state.has_key) pthread_key_delete(state.key);
}
