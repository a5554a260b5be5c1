/* The recorder's state, shared by the files that make up the recorder: recorder.c, start.c, fork.c and
 * process.c. */
#ifndef MALLOSCOPE_HOOK_STATE_H
#define MALLOSCOPE_HOOK_STATE_H

#include "core/address_index.h"
#include "core/arena.h"
#include "core/threads.h"
#include "hook/clock.h"

#include <pthread.h>
#include <stdatomic.h>

enum stage { NOT_STARTED, STARTING, RECORDING, OFF };

struct recorder {
    _Atomic int stage;
    bool exact, marks, follow, is_child;
    uint32_t depth;
    uint64_t rate, seed;
    struct recording recording;
    struct address_index index; /* of the sampled blocks that carry no mark */
    /* A word that is 1 while this process records. The kernel zeroes it in a forked child, which is then to
     * begin a recording of its own. */
    _Atomic uint32_t *owner;
    pthread_key_t thread_key; /* its destructor tells us of a thread's end */
    bool has_thread_key;
    char pattern[RECORDING_PATH_MAX]; /* of the recording's name, for children */
};

extern struct recorder recorder;

/* The calling thread's record, NULL while it has none. */
extern __thread struct thread_record *hook_thread;

static inline bool is_recording(void) {
    return __builtin_expect(atomic_load_explicit(recorder.owner, memory_order_acquire), 1);
}

/* NOT_STARTED to RECORDING or OFF (start.c). */
void start_recording(void);

/* A recording for this process, which `parent`'s process has forked (start.c). Returns 0 or a negative errno.
 */
int start_child_recording(const struct recording_header *parent);

/* A child process begins: makes it a recording of its own, or ends recording in it (fork.c). */
void process_begin_child(void);
bool process_watch_forks(void);

/* Moves the calling thread's countdown into its record (recorder.c). */
void thread_flush(struct thread_record *record);
void thread_note_name(struct thread_record *record);

#endif
