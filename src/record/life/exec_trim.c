#include "record/life/exec_trim.h"

#include "platform/system.h"
#include "record/life/fork.h"
#include "record/life/thread.h"
#include "record/sample/recorder_state.h"

#include <sys/single_threaded.h>

struct exec_trim exec_trim_before(void) {
    struct exec_trim trim = {0};
    /* A vfork child that has forbidden itself system calls may not ask whether it is one. */
    if (!__libc_single_threaded || !recorder_is_recording() || !system_calls_allowed() ||
        recorder.is_childs_sandbox || fork_shares_memory())
        return trim;
    struct recording_header *header = recorder.recording.header;
    /* Relaxed: there is no other thread. */
    trim.reserved = atomic_load_explicit(&header->arena_reserved, memory_order_relaxed);
    atomic_store_explicit(&header->last_event, clock_now(), memory_order_relaxed);
    if (recorder_thread) thread_flush(recorder_thread);
    arena_close(&recorder.recording);
    return trim;
}

void exec_trim_undo(struct exec_trim trim) {
    if (trim.reserved) arena_reopen(&recorder.recording, trim.reserved);
}
