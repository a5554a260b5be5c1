/* What the program can ask about its own heap: mscope_stats and mscope_watch_peak (malloscope.h).
 *
 * The calling thread adds up the tables of the recording while other threads go on recording. So each figure is
 * that of some moment during the call, and two figures may be of different moments. */
#define MSCOPE_LINKED
#include "base/confidence_interval.h"
#include "core/heap_table.h"
#include "core/live_table.h"
#include "core/sampler.h"
#include "core/stack_table.h"
#include "core/thread_table.h"
#include "malloscope.h"
#include "platform/clock.h"
#include "platform/counter.h"
#include "record/api/own_heaps.h"
#include "record/dump/dump_triggers.h"
#include "record/intercept/export.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"
#include "record/sample/work.h"

#define LIVE_ENTRY_TRIES 32 /* an entry that changes so often while it is copied is left out */

/* What the stacks of the recording add up to. */
struct sums {
    double total_bytes, total_objects, total_variance;
    double live_bytes, live_objects;
};

/* A number of which the table holds the bits. */
static double real_of(_Atomic uint64_t *bits) {
    union {
        uint64_t bits;
        double value;
    } real = {counter_load(bits)};
    return real.value;
}

static uint64_t current_rate(void) {
    return heap_table_rate(
        &recorder.recording, atomic_load_explicit(&recorder.malloc_heap, memory_order_acquire));
}

/* The largest sampling interval that was in force so far: a figure without any sample may have been missed at
 * that one. */
static uint64_t largest_rate(void) {
    uint64_t changed = counter_load(&recorder.largest_rate);
    return changed > recorder.rate ? changed : recorder.rate;
}

/* As model/load_stacks.c adds them up for the reports. What a forked child took over from its parent is live,
 * and not part of the total. */
static struct sums sum_stacks(struct recording *recording, uint64_t count) {
    struct sums sums = {0};
    for (uint64_t i = 0; i < count; i++) {
        struct stack_record *stack = stack_table_get(recording, (uint32_t)i);
        /* The freed figures are read first: a block that is freed in between counts as live, never as freed
         * without having been allocated. */
        double freed_bytes = (double)stack_freed_bytes(stack) / BYTE_ONE;
        double freed_objects = (double)counter_load(&stack->freed_objects) / OBJECT_ONE;
        double bytes = (double)counter_load(&stack->alloc_bytes) / BYTE_ONE;
        double objects = (double)counter_load(&stack->alloc_objects) / OBJECT_ONE;
        sums.live_bytes += bytes - freed_bytes;
        sums.live_objects += objects - freed_objects;
        sums.total_bytes += bytes - (double)stack->inherited_bytes / BYTE_ONE;
        sums.total_objects += objects - (double)stack->inherited_objects / OBJECT_ONE;
        sums.total_variance += real_of(&stack->bytes_variance);
    }
    return sums;
}

/* The variance of the live bytes: the sum of weight · (weight − size) over the samples whose blocks are live
 * (docs/sampling.md, equation (4)). */
static double live_variance(struct recording *recording, uint64_t *ret_samples) {
    double variance = 0;
    uint64_t samples = 0;
    /* Acquire: pairs with the release by the thread that added the last slot. The segments that hold so many
     * slots can then be read. */
    uint64_t slots = atomic_load_explicit(&recording->header->live.count, memory_order_acquire);
    for (uint32_t slot = 0; slot < slots; slot++) {
        struct live_entry entry;
        if (!live_table_copy(live_table_at(recording, slot), LIVE_ENTRY_TRIES, &entry)) continue;
        samples++;
        const struct stack_record *stack = stack_table_get(recording, entry.stack);
        double size = (double)entry.size;
        double weight =
            (double)sampler_weight(entry.size, heap_table_rate(recording, stack->heap)) / BYTE_ONE;
        if (weight > size) variance += weight * (weight - size);
    }
    *ret_samples = samples;
    return variance;
}

static void fill_estimates(struct recording *recording, struct mscope_stats *stats) {
    /* Acquire: pairs with the release by the thread that added the last stack, as above. */
    uint64_t stacks = atomic_load_explicit(&recording->header->stacks.count, memory_order_acquire);
    struct sums sums = sum_stacks(recording, stacks);
    double variance = live_variance(recording, &stats->live_samples);
    double unseen = confidence_interval_unseen(largest_rate());
    stats->live_bytes = sums.live_bytes;
    stats->live_objects = sums.live_objects;
    stats->live_error = confidence_interval_error(sums.live_bytes, variance, unseen);
    stats->total_bytes = sums.total_bytes;
    stats->total_objects = sums.total_objects;
    stats->total_error = confidence_interval_error(sums.total_bytes, sums.total_variance, unseen);
    stats->stacks = stacks - 1; /* STACK_DROPPED is no stack of the program's */
}

EXPORT mscope_result mscope_stats(struct mscope_stats *ret_stats) {
    if (!ret_stats || ret_stats->size < sizeof ret_stats->size) return MSCOPE_BAD_ARGUMENT;
    RECORDER_WORKS;
    if (!recorder_is_recording() && !recorder_begin(false)) return MSCOPE_BAD_STATE;
    own_heaps_enumerate();
    struct recording *recording = &recorder.recording;
    struct recording_header *header = recording->header;
    struct mscope_stats stats = {.size = ret_stats->size, .rate = current_rate()};
    fill_estimates(recording, &stats);
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
    RECORDER_WORKS;
    if (!recorder_is_recording() && !recorder_begin(false)) return MSCOPE_BAD_STATE;
    dump_triggers_watch_peak();
    return MSCOPE_OK;
}
