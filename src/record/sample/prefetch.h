/* Prefetching: asks the processor to load what a sample will need while the stack is walked.
 *
 * In a sampled recording so much time passes between two samples that the program has displaced all of the
 * recorder's memory from the processor's caches. A sample then spends most of its time waiting for memory. All
 * lines that are known to be needed are requested at once, so that their latencies overlap. Prefetches are hints:
 * an address that is not mapped any more does no harm. */
#ifndef MALLOSCOPE_RECORD_SAMPLE_PREFETCH_H
#define MALLOSCOPE_RECORD_SAMPLE_PREFETCH_H

#include "core/live_table.h"
#include "core/stack_table.h"
#include "record/sample/recorder_state.h"

#define CACHE_LINE      64
#define PREFETCH_FRAMES 32 /* frames of the last stack */

/* The stack of the thread's last sample, which is often that of its next one, too. */
struct prefetch_hint {
    const struct stack_record *record;
    const uint64_t *frames;
};

static inline void prefetch_bytes(const void *from, size_t size) {
    for (size_t at = 0; at < size; at += CACHE_LINE) __builtin_prefetch((const char *)from + at);
}

/* To be called before the stack is walked. */
static inline void prefetch_for_sample(const struct prefetch_hint *last, struct thread_record *thread) {
    struct recording_header *header = recorder.recording.header;
    uint32_t spare = live_table_spare(thread);
    if (spare != LIVE_NONE) __builtin_prefetch(live_table_at(&recorder.recording, spare), 1);
    __builtin_prefetch(&header->live_bytes, 1);
    __builtin_prefetch(&header->peak_bytes);
    __builtin_prefetch(&header->stacks);
    prefetch_bytes(thread, sizeof *thread);
    if (!last->record) return;
    __builtin_prefetch(&last->record->alloc_objects, 1);
    __builtin_prefetch(&last->record->peak_epoch);
    __builtin_prefetch(&last->record->hash);
    prefetch_bytes(last->frames, PREFETCH_FRAMES * sizeof *last->frames);
}

/* To be called when the walk has come to the stack of number `stack`: the next sample's hint. */
static inline void prefetch_note_stack(struct prefetch_hint *last, uint32_t stack) {
    last->record = stack_table_get(&recorder.recording, stack);
    last->frames = arena_at(&recorder.recording, last->record->frames);
}

#endif
