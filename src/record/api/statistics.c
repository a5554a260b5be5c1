/* What the program can ask about its own heap: mscope_stats and mscope_watch_peak (malloscope.h).
 *
 * The calling thread adds up what each thread keeps (core/running_sums.h), while other threads go on recording. So each
 * figure is that of some moment during the call, and two figures may be of different moments. It takes the same time
 * however many stacks and live blocks there are. */
#define MSCOPE_LINKED
#include "base/confidence_interval.h"
#include "core/heap_size.h"
#include "core/heap_table.h"
#include "core/peak_halves.h"
#include "core/running_sums.h"
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

/* What the stacks of the recording add up to. */
struct sums {
    double total_bytes, total_objects, total_variance;
    double live_objects, live_variance;
    uint64_t live_samples, samples;
};

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

/* Adds whole numbers up before they become doubles: what one thread has freed of another's makes its own sum wrap
 * around, and only the sum of all is right. */
static struct sums sum_up(struct recording *recording) {
    struct recording_header *header = recording->header;
    uint64_t total_bytes = 0, total_objects = 0, live_objects = 0;
    struct sums sums = {0};
    /* Acquire: pairs with the release by the thread that added the last record. */
    uint64_t threads = atomic_load_explicit(&header->threads.count, memory_order_acquire);
    for (uint64_t i = 0; i <= threads; i++) {
        struct thread_record *thread = i < threads ? thread_table_get(recording, (uint32_t)i) : NULL;
        struct running_sums *part = thread ? &thread->sums : &header->sums;
        if (thread) sums.samples += counter_load(&thread->samples);
        total_bytes += counter_load(&part->total_bytes);
        total_objects += counter_load(&part->total_objects);
        live_objects += counter_load(&part->live_objects);
        sums.live_samples += counter_load(&part->live_samples);
        sums.total_variance += running_sums_real(&part->total_variance);
        sums.live_variance += running_sums_real(&part->live_variance);
    }
    sums.total_bytes = (double)total_bytes / BYTE_ONE;
    sums.total_objects = (double)total_objects / OBJECT_ONE;
    /* Signed: a free may have been counted whose allocation was not yet, when its thread was looked at. */
    sums.live_objects = (int64_t)live_objects > 0 ? (double)live_objects / OBJECT_ONE : 0;
    if ((int64_t)sums.live_samples < 0) sums.live_samples = 0;
    /* Doubles leave a remainder, which is far below the variance of one sample. */
    if (!sums.live_samples || sums.live_variance < 0) sums.live_variance = 0;
    return sums;
}

static void fill_estimates(struct recording *recording, struct mscope_stats *stats) {
    struct sums sums = sum_up(recording);
    double unseen = confidence_interval_unseen(largest_rate());
    double live = (double)heap_size(recording) / BYTE_ONE;
    stats->live_bytes = live;
    stats->live_objects = sums.live_objects;
    stats->live_samples = sums.live_samples;
    stats->live_error = confidence_interval_error(live, sums.live_variance, unseen);
    stats->total_bytes = sums.total_bytes;
    stats->total_objects = sums.total_objects;
    stats->total_error = confidence_interval_error(sums.total_bytes, sums.total_variance, unseen);
    stats->samples = sums.samples;
    /* As model/peak.c: the variance at the peak is the same share of the bytes as over all samples. */
    struct recording_header *header = recording->header;
    double relative = sums.total_bytes > 0 ? sums.total_variance / sums.total_bytes : 0;
    double largest = (double)counter_load(&header->peak_bytes) / BYTE_ONE;
    stats->peak_bytes = peak_halves_estimate(header, live);
    stats->peak_error = confidence_interval_error(stats->peak_bytes, relative * stats->peak_bytes, unseen);
    if (largest < stats->peak_bytes) largest = stats->peak_bytes;
    stats->peak_at_most = largest + confidence_interval_error(largest, relative * largest, unseen);
    /* Acquire: pairs with the release by the thread that added the last stack. STACK_DROPPED is none of the
     * program's. */
    stats->stacks = atomic_load_explicit(&header->stacks.count, memory_order_acquire) - 1;
}

EXPORT mscope_result mscope_stats(struct mscope_stats *ret_stats) {
    if (!ret_stats || ret_stats->size < sizeof ret_stats->size) return MSCOPE_BAD_ARGUMENT;
    RECORDER_WORKS;
    if (!recorder_is_ready()) return MSCOPE_BAD_STATE;
    own_heaps_enumerate();
    struct recording *recording = &recorder.recording;
    struct recording_header *header = recording->header;
    struct mscope_stats stats = {.size = ret_stats->size, .rate = current_rate()};
    fill_estimates(recording, &stats);
    stats.heaps = atomic_load_explicit(&header->heaps.count, memory_order_relaxed);
    for (int i = 0; i < DROP_KINDS; i++)
        if (i != DROP_CHILD) stats.drops += counter_load(&header->drops[i]);
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
    if (!recorder_is_ready()) return MSCOPE_BAD_STATE;
    dump_triggers_watch_peak();
    return MSCOPE_OK;
}
