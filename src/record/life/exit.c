/* The end of the process: what lives in thread-local storage goes into the recording. */
#include "platform/caller_state.h"
#include "platform/safe_read.h"
#include "platform/system.h"
#include "record/dump/dump_triggers.h"
#include "record/intercept/got_takeover.h"
#include "record/intercept/hooks.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"

#include <unistd.h>

bool fork_shares_memory(void) {
    return recorder_is_recording() && system_calls_allowed() && recorder.recording.header->pid != getpid();
}

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

__attribute__((constructor)) static void begin_process(void) {
    recorder_start();
}
__attribute__((destructor)) static void end_process(void) {
    finish_recording();
}

#ifdef MALLOSCOPE_STATIC
#define _exit __wrap__exit /* real_allocator_static.c */
#define _Exit __wrap__Exit
#endif

/* exit() comes by the destructor above; these skip it. */
EXPORT _Noreturn void _exit(int status);
EXPORT _Noreturn void _Exit(int status);

void exit_hook(int status) {
    /* Which of the two this is, a child in a sandbox may not ask. */
    if (!recorder.is_childs_sandbox) finish_recording();
    for (;;) system_call_always(SYS_exit_group, (uint64_t)status, 0, 0, 0, 0, 0);
}

void _exit(int status) {
    exit_hook(status);
}

void _Exit(int status) {
    exit_hook(status);
}
