#include "hook/recorder.h"

#include "core/cancel.h"
#include "core/counter.h"
#include "core/events.h"
#include "core/live_table.h"
#include "core/modules.h"
#include "core/sampler.h"
#include "core/stack_table.h"
#include "hook/memo.h"
#include "hook/scratch.h"
#include "hook/state.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

__thread uint64_t hook_countdown;
__thread struct thread_record *hook_thread;
struct recorder recorder;

static void drop(enum drop kind) {
    atomic_fetch_add_explicit(&recorder.recording.header->drops[kind], 1, memory_order_relaxed);
}

/* Only the owner writes its record: plain sums, relaxed because a reader may look at any time. */
static void own_add(_Atomic uint64_t *counter, uint64_t value) {
    atomic_store_explicit(
        counter, atomic_load_explicit(counter, memory_order_relaxed) + value, memory_order_relaxed);
}

/* ---- the decision ---- */

static uint64_t draw(struct thread_record *thread) {
    uint64_t interval = sampler_draw(thread->random, recorder.rate);
    atomic_store_explicit(&thread->interval, interval, memory_order_relaxed);
    return interval;
}

static bool register_thread(void);

static void publish_countdown(uint64_t countdown) {
    __atomic_store_n(&hook_countdown, countdown, __ATOMIC_RELEASE);
    atomic_signal_fence(memory_order_seq_cst);
}

bool recorder_due(size_t size) {
    if (!is_recording()) {
        if (atomic_load_explicit(&recorder.stage, memory_order_relaxed) == NOT_STARTED) start_recording();
        if (atomic_load_explicit(&recorder.stage, memory_order_relaxed) == OFF) hook_countdown = UINT64_MAX;
        if (!is_recording()) return false;
    }
    if (!atomic_load_explicit(recorder.owner, memory_order_relaxed)) {
        process_begin_child();
        if (!is_recording()) return false;
    }
    if (!hook_thread) {
        if (!register_thread()) {
            atomic_fetch_add_explicit(&recorder.recording.header->orphan_bytes, size, memory_order_relaxed);
            return false;
        }
        if (!recorder.exact) {
            publish_countdown(draw(hook_thread));
            if (hook_countdown > size) {
                hook_countdown -= size;
                return false;
            }
        }
    }
    struct thread_record *thread = hook_thread;
    if (recorder.exact) {
        own_add(&thread->bytes, size);
    } else {
        uint64_t used = atomic_load_explicit(&thread->interval, memory_order_relaxed) - hook_countdown + size;
        /* A reader adds what the countdown has consumed of the interval. While the two do not fit, the
         * countdown is larger than any interval: it then tries again. */
        publish_countdown(UINT64_MAX);
        own_add(&thread->bytes, used);
        publish_countdown(draw(thread));
    }
    return atomic_load_explicit(&recorder.recording.header->active, memory_order_relaxed) != 0;
}

void recorder_mend_countdown(void) {
    if (!hook_thread || !is_recording()) return;
    if (hook_countdown > atomic_load_explicit(&hook_thread->interval, memory_order_relaxed))
        hook_countdown = 0;
}

void recorder_refund(size_t size) {
    if (is_recording() && hook_thread) own_add(&hook_thread->bytes, -(uint64_t)size);
}

bool recorder_marks(void) {
    return recorder.marks;
}

bool recorder_stop_marking(void) {
    if (!recorder.marks || !is_recording()) return false;
    recorder.marks = false;
    recorder.recording.header->filter = FILTER_LOOKUP;
    return true;
}

void recorder_start(void) {
    if (atomic_load_explicit(&recorder.stage, memory_order_relaxed) == NOT_STARTED) start_recording();
}

/* ---- the sample ---- */

/* Walks the caller's stack and finds its number. UINT32_MAX: all capture buffers are in use. */
static uint32_t walk_stack(
    const struct unwind_registers *caller, uint64_t now, struct unwind_trace *ret_trace) {
    struct thread_record *thread = hook_thread;
    uint32_t buffer;
    uint64_t *frames = scratch_take((uint32_t)thread->number, &buffer);
    if (!frames) return UINT32_MAX;
    bool complete, is_new;
    struct unwind_bounds bounds = unwind_stack_bounds(caller->sp, &thread->stack_low, &thread->stack_high);
    uint32_t count = unwind_capture_traced(caller, bounds, frames, recorder.depth, &complete, ret_trace);
    bool cut = count == recorder.depth && frames[count / 2] >> FRAME_KIND_SHIFT == FRAME_CUT;
    uint32_t flags = (complete ? STACK_COMPLETE : 0) | (cut ? STACK_CUT : 0);
    uint32_t stack = stack_table_intern(&recorder.recording, frames, count, flags, &is_new);
    if (is_new) modules_cover(&recorder.recording, frames, count, now);
    scratch_give(buffer);
    return stack;
}

static uint32_t remember_stack(const struct unwind_registers *caller, uint64_t now) {
    struct memo_entry *entry;
    uint32_t stack = memo_stack(caller, &entry);
    if (stack != MEMO_NONE) return stack;
    if (!entry) return walk_stack(caller, now, NULL);
    memo_begin(entry, caller);
    stack = walk_stack(caller, now, &entry->trace);
    if (stack != STACK_DROPPED && stack != UINT32_MAX) memo_keep(entry, caller, stack);
    return stack;
}

enum event_outcome recorder_sample(const void *block, size_t size, const struct unwind_registers *caller) {
    if (!is_recording()) return EVENT_DROPPED;
    live_table_prefetch(&recorder.recording, (uintptr_t)block);
    uint64_t now = clock_now();
    uint32_t stack = recorder.exact ? remember_stack(caller, now) : walk_stack(caller, now, NULL);
    if (stack == UINT32_MAX) {
        drop(DROP_SCRATCH);
        return EVENT_DROPPED;
    }
    struct thread_record *thread = hook_thread;
    struct live_entry entry = {
        .size = size,
        .weight = sampler_weight(size, recorder.rate),
        .birth = now,
        .stack = stack,
        .thread = (uint16_t)thread->number,
    };
    enum event_outcome outcome = event_allocate(&recorder.recording, (uintptr_t)block, &entry);
    if (outcome != EVENT_DROPPED) own_add(&thread->samples, 1);
    return outcome;
}

bool recorder_forget(const void *block, struct forgotten *ret_forgotten) {
    if (!is_recording()) return false;
    if (!atomic_load_explicit(recorder.owner, memory_order_relaxed)) {
        process_begin_child();
        if (!is_recording()) return false;
    }
    /* In exact mode nearly all are found: the time is asked for while the table's lines are on their way. */
    live_table_prefetch(&recorder.recording, (uintptr_t)block);
    if (recorder.exact) ret_forgotten->now = clock_now();
    bool found = live_table_remove(&recorder.recording, (uintptr_t)block, &ret_forgotten->entry);
    if (found && !recorder.exact) ret_forgotten->now = clock_now();
    if (!found && recorder.exact) counter_add(&recorder.recording.header->unknown_frees, 1);
    return found;
}

void recorder_freed(const struct forgotten *forgotten) {
    /* A thread that has no record cannot be the one that allocated the block. */
    uint32_t number = hook_thread ? (uint32_t)hook_thread->number : UINT32_MAX;
    event_free(&recorder.recording, &forgotten->entry, forgotten->now, number);
}

void recorder_restore(const void *block, const struct forgotten *forgotten) {
    event_restore(&recorder.recording, (uintptr_t)block, &forgotten->entry);
}

/* ---- threads ---- */

void thread_note_name(struct thread_record *record) {
    prctl(PR_GET_NAME, record->name);
}

static bool register_thread(void) {
    WITHOUT_CANCELLATION;
    struct recording *recording = &recorder.recording;
    int32_t tid = (int32_t)gettid();
    uint32_t number = threads_register(recording, tid, clock_now());
    if (number == UINT32_MAX) {
        drop(DROP_THREAD);
        hook_countdown = recorder.exact ? 0 : recorder.rate * 1024; /* asks again later */
        return false;
    }
    struct thread_record *record = threads_get(recording, number);
    record->number = number;
    record->countdown_address = (uintptr_t)&hook_countdown;
    uint64_t seed = recorder.seed ? recorder.seed + number * UINT64_C(0x632be59bd9b4e019) : 0;
    if (!recorder.seed && getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
        seed = clock_now() ^ (uintptr_t)record ^ ((uint64_t)tid << 40);
    random_seed(record->random, seed);
    thread_note_name(record);
    hook_thread = record;
    /* Among the first 32 keys, so that this allocates nothing. */
    if (recorder.has_thread_key) pthread_setspecific(recorder.thread_key, record);
    return true;
}

void thread_flush(struct thread_record *record) {
    if (recorder.exact) return;
    uint64_t interval = atomic_load_explicit(&record->interval, memory_order_relaxed);
    own_add(&record->bytes, interval - hook_countdown);
    atomic_store_explicit(&record->interval, hook_countdown, memory_order_relaxed);
}
