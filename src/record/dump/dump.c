#define MSCOPE_LINKED
#include "malloscope.h"

#include "platform/calls.h"
#include "platform/signals.h"
#include "record/api/own_heaps.h"
#include "record/dump/dump.h"
#include "record/intercept/export.h"
#include "record/life/options.h"
#include "record/sample/recorder_state.h"

#include <errno.h>
#include <string.h>

#define ATTEMPTS 100000u /* names that are tried */

static int write_file(struct dump_file *file, enum dump_format format) {
    struct recording *recording = &recorder.recording;
    HOLD_SIGNALS; /* a child that a handler forked would go on writing to the file */
    int r = dump_file_start(file);
    if (r < 0) return r;
    r = format == DUMP_RECORDING ? dump_recording_write(file, recording, clock_now())
                                 : dump_heap_write(file, recording);
    return dump_file_end(file, r);
}

/* False in a child that shares its parent's memory (vfork), and in a forked child that has no recording of its
 * own: the recording is its parent's. */
static bool may_dump(int pid) {
    return recorder_is_recording() && recorder.recording.header->pid == pid;
}

int dump_write(const char *pattern, enum dump_format format, _Atomic unsigned *counted) {
    static _Atomic unsigned called;
    int pid = call_getpid();
    if (!may_dump(pid)) return -ECANCELED;
    struct dump_file *file = dump_file_new();
    if (!file) return -ENOMEM;
    if (!counted && options_counter(pattern)) counted = &called;
    int r;
    unsigned tried = 0;
    do {
        /* Relaxed: two dumps at once need different numbers, and nothing else. */
        unsigned attempt = counted ? atomic_fetch_add_explicit(counted, 1, memory_order_relaxed) : 0;
        bool fits = options_path(pattern, pid, attempt, file->path, sizeof file->path);
        r = fits ? write_file(file, format) : -ENAMETOOLONG;
    } while (r == -EEXIST && counted && ++tried < ATTEMPTS);
    dump_file_free(file);
    return r;
}

EXPORT mscope_result mscope_dump(const char *path, mscope_format format) {
    if (!path || !*path || (unsigned)format > MSCOPE_FORMAT_HEAP) return MSCOPE_BAD_ARGUMENT;
    own_heaps_enumerate();
    int error = errno;
    int r = dump_write(path, format == MSCOPE_FORMAT_HEAP ? DUMP_HEAP : DUMP_RECORDING, NULL);
    errno = error;
    if (r == 0) return MSCOPE_OK;
    if (r == -ECANCELED) return MSCOPE_BAD_STATE;
    errno = -r;
    return MSCOPE_FAILED;
}

EXPORT mscope_result mscope_snapshot(const char *path) {
    return mscope_dump(path, MSCOPE_FORMAT_RECORDING);
}
