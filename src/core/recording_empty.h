/* What makes a recording empty: the recorder asks when a process ends, and `run` asks of what killed ones have left. A
 * recording is empty if recording_may_be_empty, none of its threads and stacks has events, and it names no program that
 * is not recorded. */
#ifndef MALLOSCOPE_CORE_RECORDING_EMPTY_H
#define MALLOSCOPE_CORE_RECORDING_EMPTY_H

#include "core/recording.h"

#include <stdbool.h>

/* In a recording with many threads, records of those that ended are passed on to others. */
#define RECORDING_EMPTY_THREADS_MOST 64

/* What the header tells. What a forked child has inherited is its parent's, and so are blocks that it has not
 * inherited. Relaxed, here and below: nothing else is read on the strength of it. */
static inline bool recording_may_be_empty(const struct recording_header *header) {
    for (int kind = 0; kind < DROP_KINDS; kind++)
        if (kind != DROP_INHERITED && atomic_load_explicit(&header->drops[kind], memory_order_relaxed))
            return false;
    return atomic_load_explicit(&header->threads.count, memory_order_relaxed) <=
               RECORDING_EMPTY_THREADS_MOST &&
           atomic_load_explicit(&header->heaps.count, memory_order_relaxed) <= 1 &&
           atomic_load_explicit(&header->unknown_frees, memory_order_relaxed) == 0;
}

/* Whether the process has started or become a program that is not recorded. */
static inline bool recording_names_unrecorded(const struct unrecorded_programs *table) {
    for (int i = 0; i < UNRECORDED_MOST; i++)
        if (atomic_load_explicit(&table->program[i].count, memory_order_relaxed)) return true;
    return atomic_load_explicit(&table->others, memory_order_relaxed) != 0;
}

/* Whether the thread has sampled an allocation, or freed a sample. */
static inline bool recording_thread_has_events(const struct thread_record *thread) {
    return atomic_load_explicit(&thread->samples, memory_order_relaxed) ||
           atomic_load_explicit(&thread->events, memory_order_relaxed);
}

/* Whether samples of this stack were freed. A thread without a record may have done so. */
static inline bool recording_stack_has_frees(const struct stack_record *stack) {
    return atomic_load_explicit(&stack->freed_objects, memory_order_relaxed) != 0;
}

#endif
