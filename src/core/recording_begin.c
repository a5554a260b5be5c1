#include "core/recording_begin.h"

#include "core/code_table.h"
#include "core/heap_table.h"
#include "core/live_table.h"
#include "core/module_table.h"
#include "core/name_table.h"
#include "core/stack_table.h"
#include "core/thread_table.h"
#include "core/timeline.h"
#include "core/unrecorded.h"

#include <string.h>

/* No reader accepts the file before the magic is there, and no other thread knows it: until then all stores are
 * relaxed. */

bool recording_begin(struct recording *recording, const struct recording_setup *setup) {
    struct recording_header *header = recording->header;
    header->header_size = sizeof *header;
    header->machine = setup->machine;
    header->filter = setup->filter;
    atomic_store_explicit(&header->flags, setup->rate == 1 ? RECORDING_EXACT : 0, memory_order_relaxed);
    header->pid = setup->pid;
    header->parent_pid = setup->parent_pid;
    header->writer = setup->writer;
    header->depth_max = setup->depth;
    header->rate = setup->rate;
    header->seed = setup->seed;
    header->start_monotonic = setup->start_monotonic;
    header->start_realtime = setup->start_realtime;
    thread_table_start(recording);
    module_table_start(recording);
    live_table_start(recording);
    unrecorded_start(recording);
    return name_table_start(recording) && heap_table_start(recording) && code_table_start(recording) &&
           stack_table_start(recording) && timeline_start(recording);
}

void recording_begin_publish(struct recording *recording) {
    struct recording_header *header = recording->header;
    atomic_store_explicit(&header->active, 1, memory_order_relaxed);
    header->version = RECORDING_VERSION;
    /* The magic comes last. Release: a reader that acquires the magic sees the rest. */
    atomic_thread_fence(memory_order_release);
    memcpy(header->magic, RECORDING_MAGIC, sizeof header->magic);
}
