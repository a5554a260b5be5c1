/* The recorder's state, shared by the files that make up the recorder: recorder.c, start.c, fork.c and
 * exit.c. */
#ifndef MALLOSCOPE_RECORD_SAMPLE_RECORDER_STATE_H
#define MALLOSCOPE_RECORD_SAMPLE_RECORDER_STATE_H

#include "core/address_index.h"
#include "core/arena.h"
#include "core/thread_table.h"
#include "platform/clock.h"

#include <pthread.h>
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
    _Atomic uint64_t seeds_given;  /* made from `seed`, one for each thread */
    struct recording recording;
    struct address_index index;      /* of malloc's sampled blocks that carry no mark */
    struct address_index heap_index; /* of those in the program's own heaps (heaps.c) */
    /* A word that is 1 while this process records. The kernel zeroes it in a forked child, which is then to
     * begin a recording of its own. */
    _Atomic(_Atomic uint32_t *) owner;
    pthread_key_t thread_key; /* its destructor tells us of a thread's end */
    uint32_t generation;      /* one more with each fork from a recording process to one that records */
    bool has_thread_key;
    bool is_childs_sandbox; /* system calls were forbidden in a child that shares this memory: sandbox.c */
    char pattern[RECORDING_PATH_MAX]; /* of the recording's name, for children */
};

extern struct recorder recorder;

/* The calling thread's record, NULL while it has none. */
extern __thread struct thread_record *recorder_thread;

/* Acquire, both: who finds the word at 1 finds the recorder as record (start.c) or fork_begin_child
 * (fork.c) has set it up, which release it. The stage is handed on likewise; whoever sets it to STARTING, by
 * compare and swap, has the recorder to itself until the release that ends it. */
static inline bool recorder_is_recording(void) {
    _Atomic uint32_t *owner = atomic_load_explicit(&recorder.owner, memory_order_acquire);
    return __builtin_expect(atomic_load_explicit(owner, memory_order_acquire), 1);
}

/* Whether what is allocated now is to be recorded. */
bool recorder_is_active(void);

/* Where this process does not record, or not yet: whether it does now. */
bool recorder_begin(bool may_start);

/* NOT_STARTED to RECORDING, DORMANT or OFF (start.c). */
void start_by_environment(void);

/* The same because the program wants it, by these options, and also from DORMANT. Returns 0, or a negative
 * errno if all is as before. -EALREADY: it was begun before. */
struct options;
int start_by_program(const struct options *options);

/* Makes sure that the calling thread has a record. */
bool recorder_knows_thread(void);

/* ---- What a sample is made of (recorder.c). `heap` is its number in the recording. ---- */

/* Fills in time and stack of a sample whose size, heap and count are known. `again`: it may well come from
 * the same place as another of late. False: it is dropped. */
struct sample;
struct forgotten;
struct unwind_registers;
bool recorder_capture(const struct unwind_registers *caller, bool again, struct sample *sample);
/* Puts the block into the live table, and fills in the slot. False: it is dropped. */
bool recorder_insert(const void *block, struct sample *sample);
/* The same undone: there is no way to find it again. */
void recorder_take_back(const struct sample *sample);
/* The figures learn of it. */
void recorder_count(const struct sample *sample);

/* Withdraws the block that should be in this slot, going by its entry. */
bool recorder_forget_slot(const void *block, uint32_t slot, uint32_t heap, struct forgotten *ret_forgotten);
/* The address of a block whose free was not seen is given out again: it counts as freed now. */
bool recorder_end_former(const void *block, uint32_t slot, uint32_t heap, uint64_t now);

void recorder_note_private_bytes(void);

/* A recording for this process, which `parent`'s process has forked (start.c). Returns 0 or a negative errno.
 */
int start_in_child(const struct recording_header *parent);

/* A child process begins: makes it a recording of its own, or ends recording in it (fork.c). */
void fork_begin_child(void);
bool fork_watch(void);

/* What fork handlers do, for forks that run none. */
void fork_before(void);
void fork_after_bare(bool in_child);

/* While files can still be opened: space ahead, so that recording goes on without. */
void reserve_space(void);

/* Whether this is a child in its parent's memory (vfork), whose end is not that of the recording. */
bool fork_shares_memory(void);

/* As libc's syscall() returns it: -1 and errno for an error. */
long syscall_result(long result);

/* Moves the calling thread's countdown into its record (recorder.c). */
void thread_flush(struct thread_record *record);
void thread_note_name(struct thread_record *record);

#endif
