#include "record/life/finish.h"

#include "platform/safe_read.h"
#include "record/dump/dump_triggers.h"
#include "record/life/empty.h"
#include "record/life/fork.h"
#include "record/life/thread.h"
#include "record/sample/recorder_state.h"

/* Adds to another thread's record what that thread has allocated since its last draw: interval − countdown. The
 * countdown is in its thread-local storage. The thread may have ended without notice, and its storage may be
 * unmapped: safe_read then fails where a plain read would fault. */
static void flush_other(struct thread_record *record) {
    /* Relaxed: the thread may be changing these figures at this moment. At the end of the process there is no
     * better moment to wait for. A countdown above the interval says that the thread is between two intervals. */
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
    uint64_t now = clock_now();
    for (uint64_t i = 0; i < atomic_load(&header->threads.count) && !recorder.exact; i++) {
        struct thread_record *record = thread_table_get(recording, (uint32_t)i);
        /* Acquire or stronger: a record that is RUNNING has been cleared (thread_table.c). */
        if (atomic_load(&record->state) != THREAD_RUNNING) continue;
        if (record == recorder_thread)
            thread_flush(record);
        else
            flush_other(record);
    }
    if (recorder_thread) thread_note_name(recorder_thread);
    atomic_store_explicit(&header->last_event, now, memory_order_relaxed);
    dump_triggers_at_exit();
    if (empty_may_go())
        arena_remove(recording);
    else
        arena_close(recording);
}
