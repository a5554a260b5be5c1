#include "record/sample/recorder.h"

#include "core/events.h"
#include "core/heap_table.h"
#include "core/live_table.h"
#include "core/sampler.h"
#include "core/stack_table.h"
#include "platform/counter.h"
#include "record/api/scopes.h"
#include "record/dump/dump_triggers.h"
#include "record/life/fork.h"
#include "record/life/start.h"
#include "record/life/thread.h"
#include "record/python/python.h"
#include "record/sample/capture_buffers.h"
#include "record/sample/mark.h"
#include "record/sample/prefetch.h"
#include "record/sample/recorder_state.h"
#include "record/sample/work.h"
#include "record/walkcache/walk_cache.h"

__thread uint64_t recorder_countdown;
__thread struct thread_record *recorder_thread;
__thread uint64_t recorder_early_interval;
static __thread struct prefetch_hint last_stack;
/* Numbers of heaps of malloc's kind. The running interval was drawn at the rate of drawn_heap; the interval
 * before it, which ended with the sample that is due, at the rate of due_heap. */
static __thread uint32_t drawn_heap, due_heap;
static _Atomic uint32_t nobody; /* the owner word while there is no recording: always 0 */
struct recorder recorder = {.owner = &nobody};

void recorder_drop(enum drop kind) {
    counter_add(false, &recorder.recording.header->drops[kind], 1);
}

/* ---- the decision ---- */

static uint64_t draw_interval(uint64_t *random) {
    uint32_t heap = atomic_load_explicit(&recorder.malloc_heap, memory_order_acquire);
    uint64_t rate = heap ? heap_table_rate(&recorder.recording, heap) : recorder.rate;
    /* In a child that is yet to begin its recording, the next allocation is to begin it. */
    uint64_t interval = recorder.recording.is_private ? 0 : sampler_draw(random, rate);
    due_heap = drawn_heap;
    drawn_heap = heap; /* last: a signal handler's draw comes wholly before or wholly after this one */
    return interval;
}

static uint64_t draw(struct thread_record *thread) {
    uint64_t interval = draw_interval(thread->random);
    counter_store(&thread->interval, interval);
    return interval;
}

/* The thread draws without a record. The record that it gets later takes the interval over (thread.c). */
void recorder_draw_early(void) {
    uint64_t random[4];
    if (recorder.exact) return;
    thread_seed(random);
    recorder_early_interval = recorder_countdown = draw_interval(random);
}

/* Release store: a reader in another process that sees this countdown sees the interval it belongs to. Release
 * fence: a reader that sees a store that follows sees this countdown, too. Signal fence: the compiler keeps this
 * order for the thread's own signal handlers. */
static void publish_countdown(uint64_t countdown) {
    __atomic_store_n(&recorder_countdown, countdown, __ATOMIC_RELEASE);
    atomic_thread_fence(memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
}

__attribute__((noinline, cold)) bool recorder_begin(bool may_start) {
    /* Acquire: as in recorder_is_recording. */
    int stage = atomic_load_explicit(&recorder.stage, memory_order_acquire);
    if (stage == NOT_STARTED && may_start) start_by_environment();
    /* A forked child has its parent's stage, RECORDING, and an owner word of 0. recorder_is_recording is asked
     * once more, because another thread may have finished the start since the caller asked. */
    if (stage == RECORDING && !recorder_is_recording()) {
        /* A handler that has interrupted the recorder's work, in the child of a fork in that handler: until that
         * work is done, its blocks go into the copy of the parent's recording, which the child will inherit. */
        if (work_is_nested()) return recorder.recording.is_private;
        fork_begin_child();
    }
    stage = atomic_load_explicit(&recorder.stage, memory_order_acquire);
    if (stage == OFF) recorder_countdown = UINT64_MAX;
    if (stage == DORMANT && may_start) recorder_countdown = DORMANT_INTERVAL;
    return recorder_is_recording();
}

bool recorder_begin_at_once(void) {
    start_by_environment();
    return recorder_begin(false);
}

bool recorder_due(size_t size) {
    if (!recorder_is_recording() && !recorder_begin(true)) return false;
    if (__builtin_expect(!recorder_thread, 0)) {
        if (!thread_begin(size)) return false;
        if (!recorder.exact && !counter_load(&recorder_thread->interval)) {
            publish_countdown(draw(recorder_thread));
            if (recorder_countdown > size) {
                recorder_countdown -= size;
                return false;
            }
        }
    }
    struct thread_record *thread = recorder_thread;
    if (recorder.exact) {
        /* Not 0 in the child of a handler that interrupted the entry code and forked: the entry code has put back a
         * size that it took off the parent's countdown. */
        recorder_countdown = 0;
        counter_add_own(&thread->bytes, size);
    } else {
        uint64_t used = counter_load(&thread->interval) - recorder_countdown + size;
        /* bytes + interval − countdown = what the thread has allocated, whenever countdown <= interval. A reader
         * in another process computes this sum. While the three do not belong together, the countdown is larger
         * than any interval; the reader then tries again. */
        publish_countdown(UINT64_MAX);
        counter_add_own(&thread->bytes, used);
        publish_countdown(draw(thread));
    }
    return recorder_is_active();
}

bool recorder_knows_thread(void) {
    return recorder_thread || thread_begin(0);
}

bool recorder_is_active(void) {
    return counter_load(&recorder.recording.header->active) != 0 && !scopes_ignore();
}

void recorder_mend_countdown(void) {
    if (recorder_thread && recorder_is_recording() &&
        recorder_countdown > counter_load(&recorder_thread->interval))
        recorder_countdown = 0;
}

void recorder_refund(size_t size) {
    if (recorder_is_recording() && recorder_thread) counter_add_own(&recorder_thread->bytes, -(uint64_t)size);
}

bool recorder_uses_marks(void) {
    return recorder.marks;
}

/* ---- the sample ---- */

/* Whether the stack was deeper than recorder.depth, so that frames are missing in the middle
 * (unwind/frame_output.h). */
static bool is_cut(const uint64_t *frames, uint32_t count) {
    uint32_t depth = recorder.depth;
    return count == depth && frames[depth / 2] >> FRAME_KIND_SHIFT == FRAME_CUT;
}

/* Puts the interpreter's frames among the native ones. False: the thread executes no Python code. The first
 * quarter of the capture buffer holds the native stack, the second receives the interpreter's, the second half
 * the merged one. */
static __attribute__((noinline)) bool merge_python(struct native_stack *native, bool *cut) {
    uint32_t depth = recorder.depth;
    uint64_t *room = native->frames + 2 * depth + SCOPES_ROOM;
    struct python_stack python = {.frames = room, .places = room + depth, .max = depth};
    struct native_stack merged = {.frames = room + 2 * depth, .places = room + 4 * depth + SCOPES_ROOM};
    if (!python_walk_frames(&python)) return false;
    *cut |= is_cut(python.frames, python.count);
    python_merge_frames(&python, native, &merged);
    *native = merged;
    return true;
}

/* Walks the caller's stack and returns its number in the stack table. UINT32_MAX: all capture buffers are in use.
 * `ret_trace` receives what the walk read, `ret_python` the fingerprint of the interpreter's frames; both may be
 * NULL. */
static __attribute__((noinline)) uint32_t walk_stack(const struct unwind_registers *caller, uint32_t heap,
    struct unwind_trace *ret_trace, uint64_t *ret_python) {
    struct thread_record *thread = recorder_thread;
    uint32_t buffer, depth = recorder.depth;
    struct native_stack stack = {
        .frames = capture_buffers_take((uint32_t)thread->number, caller->sp, &buffer)};
    if (!stack.frames) return UINT32_MAX;
    prefetch_for_sample(&last_stack, thread);
    bool walk_python = recorder.walks && python_is_present;
    if (walk_python || scopes_are_open()) stack.places = stack.frames + depth + SCOPES_ROOM;
    bool complete = true, in_handler = false;
    struct unwind_bounds bounds = {0};
    if (recorder.walks) {
        bounds = unwind_stack_bounds(caller->sp, &thread->stack_low, &thread->stack_high);
        stack.count = unwind_capture_traced(
            caller, bounds, stack.frames, stack.places, depth, &complete, &in_handler, ret_trace);
    }
    bool cut = is_cut(stack.frames, stack.count);
    /* In a signal handler the interpreter's frames cannot be read: the signal may have come while the interpreter
     * was changing them. */
    bool merged = walk_python && !in_handler && merge_python(&stack, &cut);
    if (merged && ret_python) *ret_python = python_fingerprint(false);
    if (!walk_python) python_look_at_stack(&stack);
    /* Where a coroutine's stack ends is not known: bounds.high is then a guess (stack_bounds.c). If the guess
     * lies beyond the lower end of the thread's own stack, the coroutine's has ended there at the latest. */
    bool is_below = bounds.low < thread->stack_low && thread->stack_low < bounds.high;
    uint64_t high = is_below ? thread->stack_low : bounds.high;
    stack.count = scopes_merge(stack.frames, stack.places, stack.count, bounds.low, high);
    struct stack_key key = {.frames = stack.frames,
        .frame_count = stack.count,
        .heap = heap,
        .flags = (complete ? STACK_COMPLETE : 0) | (cut ? STACK_CUT : 0)};
    uint32_t number = stack_table_intern(&recorder.recording, &key);
    capture_buffers_give(buffer);
    prefetch_note_stack(&last_stack, number);
    return number;
}

/* The number of the caller's stack: from the walk cache, if it is known there. */
static uint32_t find_stack(const struct unwind_registers *caller, uint32_t heap, bool is_locked) {
    struct walk_lookup lookup;
    uint64_t context = scopes_fingerprint() + heap * UINT64_C(0x632be59bd9b4e019);
    uint32_t stack = walk_cache_find(caller, recorder_thread, context, is_locked, &lookup);
    if (stack != WALK_UNKNOWN) return stack;
    if (!lookup.cache) return walk_stack(caller, heap, NULL, NULL);
    stack = walk_stack(caller, heap, lookup.trace, &lookup.python);
    walk_cache_keep(&lookup, caller, stack == STACK_DROPPED ? WALK_UNKNOWN : stack);
    return stack;
}

/* A sample that is dropped as a whole does not count for its stack, too. */
static __attribute__((noinline, cold)) void drop_for_room(const struct sample *sample) {
    recorder_drop(DROP_LIVE_TABLE);
    if (sample->stack == STACK_DROPPED)
        counter_add(false, &recorder.recording.header->drops[DROP_STACK_TABLE], -UINT64_C(1));
}

inline bool recorder_insert(const void *block, struct sample *sample) {
    struct live_entry *entry;
    if ((uintptr_t)block & ~LIVE_KEY_MASK) {
        recorder_drop(DROP_ADDRESS);
        return false;
    }
    sample->slot = live_table_take(&recorder.recording, recorder_thread, &entry);
    if (sample->slot == LIVE_NONE) {
        drop_for_room(sample);
        return false;
    }
    sample_store(sample, entry);
    live_table_publish(entry, (uintptr_t)block);
    return true;
}

static inline bool capture(
    const struct unwind_registers *caller, bool again, bool is_locked, struct sample *sample) {
    sample->birth = clock_now();
    scopes_prepare();
    again &= recorder.walks;
    sample->stack =
        again ? find_stack(caller, sample->heap, is_locked) : walk_stack(caller, sample->heap, NULL, NULL);
    if (sample->stack == UINT32_MAX) recorder_drop(DROP_SCRATCH);
    /* All samples for which the stack table had no room share one record, whose heap is 0. Their frees are
     * weighed at the rate of that heap, so their allocations must be, too. */
    if (sample->stack == STACK_DROPPED && sample->heap == due_heap) sample->heap = 0;
    return sample->stack != UINT32_MAX;
}

inline bool recorder_capture(const struct unwind_registers *caller, bool again, struct sample *sample) {
    return capture(caller, again, false, sample);
}

inline void recorder_count(const struct sample *sample) {
    events_allocate(&recorder.recording, recorder_thread, sample);
    counter_add_own(&recorder_thread->samples, 1);
    if (__builtin_expect(dump_triggers_want_samples, 0)) dump_triggers_note(*sample);
}

/* The thread had a record when recorder_take chose this allocation. It has none if the recording of a forked child
 * has begun since. If this is the child of a signal handler that has forked since, its recording has not begun: the
 * sample goes into the copy of the parent's recording. */
static inline bool can_record(void) {
    return (recorder_is_recording() || recorder.recording.is_private) &&
           __builtin_expect(recorder_thread != NULL, 1);
}

/* Flattened: all that a sample from a known stack needs is inlined here. In exact mode this function is what an
 * allocation costs. */
__attribute__((flatten)) struct sample recorder_sample(
    const void *block, size_t size, uint32_t heap, const struct unwind_registers *caller) {
    struct sample sample = sample_of_malloc(size, 0, 0, LIVE_NONE);
    sample.heap = heap ? heap : due_heap;
    /* Only the thread that holds the interpreter's lock allocates one of its objects. */
    bool is_locked = heap != 0;
    if (can_record() && capture(caller, recorder.exact, is_locked, &sample) &&
        recorder_insert(block, &sample))
        recorder_count(&sample);
    return sample;
}

/* ---- the free ---- */

bool recorder_forget_slot(const void *block, uint32_t slot, uint32_t heap, struct forgotten *ret_forgotten) {
    struct live_entry *entry = live_table_at_checked(&recorder.recording, slot);
    /* Acquire: pairs with the release in live_table_publish, so that the fields read next are those of this key.
     * If another thread reuses the slot meanwhile, the key changes, and live_table_withdraw_once fails. */
    uint64_t key = entry ? atomic_load_explicit(&entry->key, memory_order_acquire) : 0;
    if (!entry || (key & LIVE_KEY_MASK) != (uintptr_t)block) return false;
    ret_forgotten->sample = sample_of_entry(entry, slot, heap);
    ret_forgotten->entry = entry;
    ret_forgotten->generation = recorder.generation;
    return live_table_withdraw_once(entry, key);
}

bool recorder_forget(const void *block, struct forgotten *ret_forgotten) {
    if (!recorder_is_recording() && !recorder_begin(false)) return false;
    uint32_t slot = mark_slot(block);
    if (slot == LIVE_NONE) return false;
    ret_forgotten->now = clock_now();
    ret_forgotten->sample = mark_sample(block, ret_forgotten->now);
    /* In a forked child the mark of an inherited block names a stack of the parent's recording. Its slot may even
     * belong to another block: one that another thread of the parent allocated during the fork. So a child goes
     * by the entry in the live table. Elsewhere the entry is not read, because it is seldom in the cache. */
    if (__builtin_expect(recorder.is_child, 0)) return recorder_forget_slot(block, slot, 0, ret_forgotten);
    ret_forgotten->entry = live_table_at(&recorder.recording, slot);
    ret_forgotten->generation = recorder.generation;
    live_table_withdraw(ret_forgotten->entry);
    return true;
}

/* Whether this process was forked after recorder_forget: by a signal handler that interrupted the allocator, and
 * whose child returned from the handler. The child's recording was made without the block, and its slot is free
 * there. */
static bool is_of_parent(const struct forgotten *forgotten) {
    return __builtin_expect(forgotten->generation != recorder.generation, 0);
}

__attribute__((flatten)) void recorder_freed(const struct forgotten *forgotten) {
    if (is_of_parent(forgotten)) return;
    events_free(&recorder.recording, recorder_thread, &forgotten->sample, forgotten->now);
    live_table_give_entry(&recorder.recording, recorder_thread, forgotten->sample.slot, forgotten->entry);
}

__attribute__((flatten)) void recorder_end(const void *block, uint32_t heap) {
    struct forgotten forgotten;
    if (!recorder_forget(block, &forgotten)) return;
    forgotten.sample.heap = heap;
    recorder_freed(&forgotten);
}

bool recorder_restore(const void *block, const struct forgotten *forgotten) {
    if (is_of_parent(forgotten)) return false;
    live_table_publish(forgotten->entry, (uintptr_t)block);
    return true;
}

/* ---- blocks without marks ---- */

void recorder_take_back(const struct sample *sample) {
    live_table_withdraw(live_table_at(&recorder.recording, sample->slot));
    live_table_give(&recorder.recording, recorder_thread, sample->slot);
    recorder_drop(DROP_LIVE_TABLE);
}

void recorder_note_private_bytes(void) {
    _Atomic uint64_t *noted = &recorder.recording.header->private_bytes;
    uint64_t bytes =
        counter_load(&recorder.index.bytes) + counter_load(&recorder.heap_index.bytes) + walk_cache_bytes();
    if (counter_load(noted) != bytes) counter_store(noted, bytes);
}

bool recorder_end_former(const void *block, uint32_t slot, uint32_t heap, uint64_t now) {
    struct forgotten former = {.now = now};
    if (!recorder_forget_slot(block, slot, heap, &former)) return false;
    recorder_freed(&former);
    return true;
}

enum outcome recorder_sample_unmarked(const void *block, size_t size, const struct unwind_registers *caller) {
    struct sample sample = sample_of_malloc(size, 0, 0, LIVE_NONE);
    uint64_t address = (uintptr_t)block;
    sample.heap = due_heap;
    if (!can_record()) return OUTCOME_DROPPED;
    address_index_prefetch(&recorder.index, address);
    if (!recorder_capture(caller, recorder.exact, &sample)) return OUTCOME_DROPPED;
    /* A former block at this address, whose free was not seen, may still be in the index. address_index_insert
     * finds it if it is in the newest segment of the index. A search of the older segments costs too much in
     * exact mode. */
    uint32_t former = recorder.exact ? INDEX_NONE : address_index_remove(&recorder.index, address);
    bool replaced = recorder_end_former(block, former, 0, sample.birth);
    if (!recorder_insert(block, &sample)) return OUTCOME_DROPPED;
    if (!address_index_insert(&recorder.index, address, sample.slot, &former)) {
        recorder_take_back(&sample);
        return OUTCOME_DROPPED;
    }
    recorder_note_private_bytes();
    replaced |= recorder_end_former(block, former, 0, sample.birth);
    recorder_count(&sample);
    return replaced ? OUTCOME_REPLACED : OUTCOME_RECORDED;
}

void recorder_note_ignored(const void *block) {
    if (!recorder.exact || !recorder_is_recording() || !scopes_ignore()) return;
    uint32_t former;
    if (!address_index_insert(&recorder.index, (uintptr_t)block, INDEX_IGNORED, &former)) return;
    recorder_note_private_bytes();
    recorder_end_former(block, former, 0, clock_now());
}

bool recorder_forget_unmarked(const void *block, struct forgotten *ret_forgotten) {
    if (!recorder_is_recording() && !recorder_begin(false)) return false;
    address_index_prefetch(&recorder.index, (uintptr_t)block);
    ret_forgotten->now = clock_now(); /* while the prefetched line arrives */
    uint32_t slot = address_index_remove(&recorder.index, (uintptr_t)block);
    if (recorder_forget_slot(block, slot, 0, ret_forgotten)) return true;
    if (recorder.exact && slot != INDEX_IGNORED)
        counter_add(false, &recorder.recording.header->unknown_frees, 1);
    return false;
}

void recorder_restore_unmarked(const void *block, const struct forgotten *forgotten) {
    uint32_t former;
    if (recorder_restore(block, forgotten) &&
        !address_index_insert(&recorder.index, (uintptr_t)block, forgotten->sample.slot, &former))
        recorder_drop(DROP_LIVE_TABLE);
}
