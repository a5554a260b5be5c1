/* The recorder's state, shared by the files that make up the recorder: recorder.c, start.c, fork.c and
 * exit.c. */
#ifndef MALLOSCOPE_RECORD_SAMPLE_RECORDER_STATE_H
#define MALLOSCOPE_RECORD_SAMPLE_RECORDER_STATE_H

#include "core/address_index.h"
#include "core/arena.h"
#include "core/thread_table.h"
#include "platform/clock.h"

#include <stdatomic.h>

/* DORMANT: the library is there, and nobody has asked it to record yet. */
enum stage { NOT_STARTED, STARTING, RECORDING, OFF, DORMANT };

#define DORMANT_INTERVAL (64u << 10) /* bytes after which a thread looks whether recording has begun */

struct recorder {
    _Atomic int stage;
    bool exact, marks, follow, is_child;
    bool walks;               /* native stacks are wanted */
    bool shows_python;        /* and the interpreter's frames, if there is one */
    _Atomic bool was_started; /* it has been active */
    uint32_t depth;
    uint32_t objects;    /* number of the heap of an interpreter's objects (python_objects.c); 0: none yet */
    uint64_t rate, seed; /* `rate` is that of the start */
    /* Number of the heap that malloc's samples are drawn for: 0, or one for another rate (rate.c). */
    _Atomic uint32_t malloc_heap;
    _Atomic uint64_t largest_rate; /* that it was changed to, or 0 */
    struct recording recording;
    struct address_index index;      /* of malloc's sampled blocks that carry no mark */
    struct address_index heap_index; /* of those in the program's own heaps (heaps.c) */
    /* A word that is 1 while this process records. The kernel zeroes it in a forked child, which is then to
     * begin a recording of its own. */
    _Atomic(_Atomic uint32_t *) owner;
    uint32_t generation;    /* one more with each fork from a recording process to one that records */
    bool is_childs_sandbox; /* system calls were forbidden in a child that shares this memory: sandbox.c */
};

extern struct recorder recorder;

/* The calling thread's record, NULL while it has none. */
extern __thread struct thread_record *recorder_thread;

/* Acquire, both: who finds the word at 1 finds the recorder as start_with (start.c) or fork_begin_child
 * (fork.c) has set it up, which release it. The stage is handed on likewise; whoever sets it to STARTING, by
 * compare and swap, has the recorder to itself until the release that ends it. */
static inline bool recorder_is_recording(void) {
    _Atomic uint32_t *owner = atomic_load_explicit(&recorder.owner, memory_order_acquire);
    return __builtin_expect(atomic_load_explicit(owner, memory_order_acquire), 1);
}

#endif
