/* The life of a recording as the program commands it (malloscope.h). */
#define MSCOPE_LINKED
#include "core/heap_table.h"
#include "core/live_table.h"
#include "core/sampler.h"
#include "core/stack_table.h"
#include "malloscope.h"
#include "platform/counter.h"
#include "record/api/own_heaps.h"
#include "record/api/scopes.h"
#include "record/dump/dump_triggers.h"
#include "record/intercept/export.h"
#include "record/intercept/got_takeover.h"
#include "record/life/finish.h"
#include "record/life/options.h"
#include "record/life/start.h"
#include "record/python/python.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

EXPORT const char *mscope_result_text(mscope_result result) {
    switch (result) {
    case MSCOPE_OK:
        return "done";
    case MSCOPE_ABSENT:
        return "the recorder is not part of this process";
    case MSCOPE_BAD_STATE:
        return "this cannot be done in the recorder's present state";
    case MSCOPE_BAD_ARGUMENT:
        return "an argument makes no sense";
    case MSCOPE_NO_HEAP:
        return "this heap was never registered";
    case MSCOPE_UNKNOWN:
        return "no block that was reported is at this address";
    case MSCOPE_FULL:
        return "there is no room for more";
    case MSCOPE_FAILED:
        return "the system refused; errno says why";
    }
    return "not a result of malloscope";
}

EXPORT mscope_state_is mscope_state(void) {
    switch (atomic_load_explicit(&recorder.stage, memory_order_acquire)) {
    case RECORDING:
        if (counter_load(&recorder.recording.header->active)) return MSCOPE_ACTIVE;
        return recorder.was_started ? MSCOPE_STOPPED : MSCOPE_INITIALIZED;
    case OFF:
        return MSCOPE_TERMINATED;
    default:
        return MSCOPE_UNINITIALIZED;
    }
}

/* ---- init ---- */

#define HAS(options, field)                                                                                  \
    ((options)->size >= offsetof(struct mscope_options, field) + sizeof((options)->field) && (options)->field)

/* What the program says, over what the environment says. */
static bool take_options(struct options *options, const struct mscope_options *given) {
    if (!given) return true;
    if (given->size < sizeof given->size) return false;
    if (HAS(given, output)) options->output = given->output;
    if (HAS(given, rate)) options->rate = given->rate;
    if (HAS(given, depth)) options->depth = given->depth;
    if (HAS(given, max_bytes)) options->size_max = given->max_bytes;
    if (HAS(given, replace)) options->replace = true;
    if (options->depth < 2 || options->depth > DEPTH_MOST) return false;
    if (!HAS(given, stacks)) return true;
    uint32_t stacks = given->stacks & ~MSCOPE_STACKS_THREADS;
    options->thread_frames = given->stacks & MSCOPE_STACKS_THREADS;
    options->stacks = stacks == MSCOPE_STACKS_NATIVE   ? STACKS_NATIVE
                      : stacks == MSCOPE_STACKS_SCOPES ? STACKS_SCOPES
                                                       : STACKS_BOTH;
    return stacks <= MSCOPE_STACKS_SCOPES;
}

EXPORT mscope_result mscope_init(const struct mscope_options *given) {
    struct options options;
    start_by_environment();
    if (mscope_state() != MSCOPE_UNINITIALIZED) return MSCOPE_BAD_STATE;
    if (!options_read(&options)) return MSCOPE_BAD_STATE;
    if (!take_options(&options, given)) return MSCOPE_BAD_ARGUMENT;
    options.is_root = true;
    int r = start_by_program(&options);
    if (r == 0) return MSCOPE_OK;
    if (r == -EALREADY) return MSCOPE_BAD_STATE;
    errno = -r;
    return MSCOPE_FAILED;
}

/* ---- start, stop, shutdown: of several threads that try at once, one succeeds ---- */

static mscope_result set_active(uint64_t active) {
    uint64_t other = !active;
    if (atomic_load_explicit(&recorder.stage, memory_order_acquire) != RECORDING) return MSCOPE_BAD_STATE;
    if (!recorder_is_recording() && !recorder_begin(false)) return MSCOPE_BAD_STATE; /* a child that begins */
    /* The exchange says which of several threads it is; it happens so rarely that the strongest order will
     * do. */
    if (!atomic_compare_exchange_strong(&recorder.recording.header->active, &other, active))
        return MSCOPE_BAD_STATE;
    if (!active) atomic_fetch_or(&recorder.recording.header->flags, RECORDING_PAUSED);
    scopes_switch(active);
    return MSCOPE_OK;
}

EXPORT mscope_result mscope_start(void) {
    mscope_state_is state = mscope_state();
    if (state == MSCOPE_INITIALIZED || state == MSCOPE_STOPPED) got_takeover_begin();
    mscope_result result = set_active(1);
    if (result == MSCOPE_OK) recorder.was_started = true;
    return result;
}

EXPORT mscope_result mscope_stop(void) {
    return set_active(0);
}

EXPORT mscope_result mscope_shutdown(void) {
    int stage = RECORDING;
    if (!recorder_is_recording() && !recorder_begin(false)) return MSCOPE_BAD_STATE;
    own_heaps_enumerate();
    if (!atomic_compare_exchange_strong(&recorder.stage, &stage, STARTING)) return MSCOPE_BAD_STATE;
    scopes_switch(false);
    got_takeover_end();
    python_end();
    finish_recording();
    /* In this order, and released: who finds that the process has no owner finds the stage that says why. */
    atomic_store_explicit(&recorder.stage, OFF, memory_order_release);
    atomic_store_explicit(recorder.owner, 0, memory_order_release);
    return MSCOPE_OK;
}

/* ---- figures ---- */

static double square_root(double value) {
    double root = value > 1 ? value : 1;
    for (int i = 0; i < 64 && value > 0; i++) root = (root + value / root) / 2;
    return value > 0 ? root : 0;
}

static double real_of(_Atomic uint64_t *bits) {
    union {
        uint64_t bits;
        double value;
    } real = {counter_load(bits)};
    return real.value;
}

/* Half the width of the 95 % interval; of an estimate without a sample, three times the rate. */
static double error_of(double variance, double estimate, uint64_t rate) {
    if (estimate > 0) return 1.96 * square_root(variance); /* to which what is exact adds nothing */
    return rate == 1 ? 0 : 3 * (double)rate;
}

/* Of what has no sample nothing is known but that, at the least dense of the rates, it was not drawn. */
static uint64_t largest_rate(void) {
    uint64_t changed = counter_load(&recorder.largest_rate);
    return changed > recorder.rate ? changed : recorder.rate;
}

static double live_variance(struct recording *recording, uint64_t *ret_samples) {
    double sum = 0;
    /* Acquire, here and in the sums below: the segments that hold so many entries are seen. */
    uint64_t slots = atomic_load_explicit(&recording->header->live.count, memory_order_acquire);
    for (uint32_t slot = 0; slot < slots; slot++) {
        struct live_entry entry;
        if (!live_table_copy(live_table_at(recording, slot), 32, &entry)) continue;
        ++*ret_samples;
        const struct stack_record *stack = stack_table_get(recording, entry.stack);
        double size = (double)entry.size;
        double weight =
            (double)sampler_weight(entry.size, heap_table_rate(recording, stack->heap)) / BYTE_ONE;
        if (weight > size) sum += weight * (weight - size);
    }
    return sum;
}

static void sum_stacks(struct recording *recording, struct mscope_stats *stats) {
    uint64_t count = atomic_load_explicit(&recording->header->stacks.count, memory_order_acquire);
    double freed_objects = 0, freed_bytes = 0, variance = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct stack_record *stack = stack_table_get(recording, (uint32_t)i);
        freed_bytes += (double)stack_freed_bytes(stack) / BYTE_ONE;
        freed_objects += (double)counter_load(&stack->freed_objects) / OBJECT_ONE;
        stats->total_bytes += (double)(counter_load(&stack->alloc_bytes) - stack->inherited_bytes) / BYTE_ONE;
        stats->total_objects +=
            (double)(counter_load(&stack->alloc_objects) - stack->inherited_objects) / OBJECT_ONE;
        stats->live_bytes += (double)counter_load(&stack->alloc_bytes) / BYTE_ONE;
        stats->live_objects += (double)counter_load(&stack->alloc_objects) / OBJECT_ONE;
        variance += real_of(&stack->bytes_variance);
    }
    stats->live_bytes -= freed_bytes;
    stats->live_objects -= freed_objects;
    stats->live_error =
        error_of(live_variance(recording, &stats->live_samples), stats->live_bytes, largest_rate());
    stats->total_error = error_of(variance, stats->total_bytes, largest_rate());
    stats->stacks = count - 1;
}

static uint64_t current_rate(void) {
    return heap_table_rate(
        &recorder.recording, atomic_load_explicit(&recorder.malloc_heap, memory_order_acquire));
}

EXPORT mscope_result mscope_stats(struct mscope_stats *ret_stats) {
    if (!ret_stats || ret_stats->size < sizeof ret_stats->size) return MSCOPE_BAD_ARGUMENT;
    if (!recorder_is_recording() && !recorder_begin(false)) return MSCOPE_BAD_STATE;
    own_heaps_enumerate();
    struct recording *recording = &recorder.recording;
    struct recording_header *header = recording->header;
    struct mscope_stats stats = {.size = ret_stats->size, .rate = current_rate()};
    sum_stacks(recording, &stats);
    stats.peak_bytes = (double)counter_load(&header->peak_bytes) / BYTE_ONE;
    stats.heaps = atomic_load_explicit(&header->heaps.count, memory_order_relaxed);
    for (int i = 0; i < DROP_KINDS; i++)
        if (i != DROP_CHILD) stats.drops += counter_load(&header->drops[i]);
    for (uint64_t i = 0; i < atomic_load_explicit(&header->threads.count, memory_order_acquire); i++)
        stats.samples += counter_load(&thread_table_get(recording, (uint32_t)i)->samples);
    stats.max_bytes = header->size_max;
    stats.time_ns = clock_now();
    stats.watched_peak = (double)dump_triggers_peak() / BYTE_ONE;
    stats.recorder_bytes = counter_load(&header->arena_used) + counter_load(&header->private_bytes);
    size_t size = stats.size < sizeof stats ? stats.size : sizeof stats;
    __builtin_memcpy(ret_stats, &stats, size);
    return MSCOPE_OK;
}

EXPORT mscope_result mscope_watch_peak(void) {
    if (!recorder_is_recording() && !recorder_begin(false)) return MSCOPE_BAD_STATE;
    dump_triggers_watch_peak();
    return MSCOPE_OK;
}
