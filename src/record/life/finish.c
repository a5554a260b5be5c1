#include "record/life/finish.h"

#include "platform/caller_state.h"
#include "platform/safe_read.h"
#include "record/dump/dump_triggers.h"
#include "record/life/fork.h"
#include "record/life/thread.h"
#include "record/sample/recorder_state.h"

/* What other threads have allocated since their last draw stands in their thread-local storage. One of them
 * may be gone by now without having told: the copy fails where a plain read would fault. */
static void flush_other(struct thread_record *record) {
    /* Relaxed: sums that the thread may be changing just now; at the end of the process that is the best
     * there is. */
    uint64_t countdown;
    if (!safe_read(&countdown, record->countdown_address, sizeof countdown)) return;
    uint64_t interval = atomic_load_explicit(&record->interval, memory_order_relaxed);
    if (countdown > interval) return;
    atomic_fetch_add_explicit(&record->bytes, interval - countdown, memory_order_relaxed);
    atomic_store_explicit(&record->interval, countdown, memory_order_relaxed);
}

void finish_recording(void) {
    if (!recorder_is_recording()) return;
    struct recording *recording = &recorder.recording;
    struct recording_header *header = recording->header;
    if (fork_shares_memory()) return;
    KEEP_CALLER_STATE;
    uint64_t now = clock_now();
    for (uint64_t i = 0; i < atomic_load(&header->threads.count) && !recorder.exact; i++) {
        struct thread_record *record = thread_table_get(recording, (uint32_t)i);
        /* Acquire at least, as threads.c says: what runs is filled. */
        if (atomic_load(&record->state) != THREAD_RUNNING) continue;
        if (record == recorder_thread)
            thread_flush(record);
        else
            flush_other(record);
    }
    if (recorder_thread) thread_note_name(recorder_thread);
    atomic_store_explicit(&header->last_event, now, memory_order_relaxed);
    dump_triggers_at_exit();
    arena_close(recording);
}
