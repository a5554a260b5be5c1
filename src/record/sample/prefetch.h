/* What a sample will need is on its way into the cache while the stack is walked.
 *
 * In a sampled recording so much time passes between two samples that the program has thrown all of the
 * recorder's memory out of the processor's caches: a sample waits for memory and does little else. Whatever
 * is known to be needed is asked for at once, instead of one after the other. These are hints: an address
 * that is not mapped any more does no harm. */
#ifndef MALLOSCOPE_RECORD_SAMPLE_PREFETCH_H
#define MALLOSCOPE_RECORD_SAMPLE_PREFETCH_H

#include "core/live_table.h"
#include "core/stack_table.h"
#include "platform/counter.h"
#include "record/sample/recorder_state.h"

#define CACHE_LINE      64
#define PREFETCH_FRAMES 32 /* of the last stack */

/* The last stack that the thread had a sample of: often the next one's, too. */
struct prefetch_hint {
    const struct stack_record *record;
    const uint64_t *frames;
};

static inline void prefetch_bytes(const void *from, size_t size) {
    for (size_t at = 0; at < size; at += CACHE_LINE) __builtin_prefetch((const char *)from + at);
}

/* Before the walk. */
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

/* After it, for the next one. */
static inline void prefetch_note_stack(struct prefetch_hint *last, uint32_t stack) {
    last->record = stack_table_get(&recorder.recording, stack);
    last->frames = arena_at(&recorder.recording, last->record->frames);
}

#endif
