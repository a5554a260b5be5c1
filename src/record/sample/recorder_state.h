/* The recorder's state, which all folders of record/ share. */
#ifndef MALLOSCOPE_RECORD_SAMPLE_RECORDER_STATE_H
#define MALLOSCOPE_RECORD_SAMPLE_RECORDER_STATE_H

#include "core/address_index.h"
#include "core/arena.h"
#include "core/thread_table.h"
#include "platform/clock.h"

#include <stdatomic.h>

/* The stages of a process. In every stage the program's allocations are served.
 *
 *     NOT_STARTED ──► STARTING ──► RECORDING ──► STARTING ──► RECORDING   a forked child that is recorded
 *                      ▲  │ │                       └───────► OFF         one that is not; mscope_shutdown
 *          mscope_init │  │ └────► OFF                                    the recording could not be made
 *                      │  ▼
 *                     DORMANT                                             nobody has asked for a recording
 *
 * The thread that sets STARTING, by compare-and-swap, has the recorder to itself until it sets the next stage. */
enum stage { NOT_STARTED, STARTING, RECORDING, OFF, DORMANT };

#define DORMANT_INTERVAL (64u << 10) /* bytes after which a thread looks whether recording has begun */

struct recorder {
    _Atomic int stage;        /* enum stage */
    bool exact;               /* every allocation is recorded: the sampling interval is 1 */
    bool marks;               /* sampled blocks carry marks (mark.h) */
    bool follow;              /* forked children are recorded, too */
    bool is_root;             /* the user or the program itself asked for this process's recording */
    bool is_child;            /* this process was forked by one that recorded */
    bool walks;               /* native stacks are wanted */
    bool shows_python;        /* the interpreter's frames are wanted, if there is an interpreter */
    bool is_childs_sandbox;   /* a vfork child has forbidden itself system calls (sandbox.c) */
    _Atomic bool was_started; /* recording has been active at some time (control.c) */
    uint32_t depth;           /* the most frames of a stack */
    uint32_t generation;      /* forks from the first recording process to this one */
    uint32_t objects_heap;    /* heap of an interpreter's objects (python_objects.c); 0: none yet */
    uint64_t rate;            /* malloc's mean sampling interval at the start, in bytes */
    uint64_t seed;            /* of the threads' random numbers; 0: the kernel seeds them */

    /* The heap that malloc's samples are drawn for: 0, or one that stands for another rate (rate.c). */
    _Atomic uint32_t malloc_heap;
    _Atomic uint64_t largest_rate; /* of those that malloc's was changed to; 0: it was not */

    struct recording recording;
    struct address_index index;      /* of malloc's sampled blocks that carry no mark */
    struct address_index heap_index; /* of sampled blocks in the program's own heaps (own_heaps.c) */

    /* Points to a word that is 1 while this process records. The kernel sets the word to 0 in a forked child,
     * which has to begin a recording of its own (fork.c). */
    _Atomic(_Atomic uint32_t *) owner;
};

extern struct recorder recorder;

/* The calling thread's record in the recording; NULL while it has none. */
extern __thread struct thread_record *recorder_thread;

/* The interval that the calling thread has drawn before it has a record; 0: none. */
extern __thread uint64_t recorder_early_interval;

/* Whether this process records. A thread that sees true may use everything in `recorder`.
 *
 * Acquire, twice: both loads pair with the release stores that end start_with (start.c) and fork_begin_child
 * (fork.c), so that what was set up before these stores is seen. `stage` is read with acquire for the same
 * reason. */
static inline bool recorder_is_recording(void) {
    _Atomic uint32_t *owner = atomic_load_explicit(&recorder.owner, memory_order_acquire);
    return __builtin_expect(atomic_load_explicit(owner, memory_order_acquire), 1);
}

#endif
