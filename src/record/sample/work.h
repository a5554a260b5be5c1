/* The recorder's work: whether the calling thread is in the middle of it.
 *
 * A signal handler may interrupt a change to the tables, and fork. Its child returns into the interrupted call and goes
 * on with the change, so it needs tables of its own to go on in (life/fork.c). Each call in which tables are changed
 * therefore leaves a word on its stack, to which `recorder_work` points while it runs:
 *
 *     recorder_work ──► word of the handler's malloc ──► word of the malloc that it interrupted ──► NULL
 *
 * The entry code (entry_*.S) has the word in the frame of its cold paths. A call that ended by longjmp leaves
 * recorder_work pointing to a word that is gone. The stack pointer shows that, or a walk of the stack: only a signal
 * handler interrupts. */
#ifndef MALLOSCOPE_RECORD_SAMPLE_WORK_H
#define MALLOSCOPE_RECORD_SAMPLE_WORK_H

#include "platform/system.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct work {
    struct work *interrupted; /* NULL: none */
};

extern __thread struct work *recorder_work;

/* Signal fences: the compiler changes no table before the word is there, or after it has gone. */
static inline void work_begin(struct work *work) {
    work->interrupted = recorder_work;
    atomic_signal_fence(memory_order_seq_cst);
    __atomic_store_n(&recorder_work, work, __ATOMIC_RELAXED);
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void work_end(struct work *work) {
    atomic_signal_fence(memory_order_seq_cst);
    __atomic_store_n(&recorder_work, work->interrupted, __ATOMIC_RELAXED);
}

/* The rest of the enclosing block is the recorder's work. */
#define RECORDER_WORKS                                                                                       \
    __attribute__((cleanup(work_end), unused)) struct work work;                                             \
    work_begin(&work)

/* Ends the work of the entry code's cold path early: what follows may leave by an exception. */
static inline void work_end_here(void) {
    if (recorder_work) work_end(recorder_work);
}

/* Whether the calling thread has interrupted work. To be asked outside of the recorder's work. */
bool work_is_interrupted(void);

/* The same, to be asked within work, of which there is an outer one then. */
bool work_is_nested(void);

#endif
