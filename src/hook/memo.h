/* What a thread's recent walks came to: in exact mode most allocations come from a stack that was walked a
 * moment ago.
 *
 * An entry holds the registers a walk started from and the words it read from the stack. Where all of them
 * are as they were, and the modules too, the native frames are the same. Without an interpreter so is the
 * stack, and neither the walk nor the search in the stack table is needed. With one, many lines of Python
 * come from the same native frames: which stack it is, is found by those and by the signature of the
 * interpreter's frames. Each thread has its own, in memory that only it uses. */
#ifndef MALLOSCOPE_HOOK_MEMO_H
#define MALLOSCOPE_HOOK_MEMO_H

#include "unwind/unwind.h"

#define MEMO_NONE UINT32_MAX

struct memo_entry {
    uint64_t pc, sp, fp; /* pc 0: not valid */
    uint64_t epoch;      /* of the modules, when the walk began */
    uint64_t around;     /* what else the stack is made of: the thread's scopes, the heap */
    uint64_t serial;     /* of this walk; no other one of the thread has it */
    uint64_t python;     /* signature of the interpreter's frames (python.h) that it met; 0: none */
    uint32_t stack;      /* with those */
    struct unwind_trace trace;
};

/* What is known of a stack. */
struct memo {
    struct memo_entry *entry; /* its native frames, or what is to be filled by a walk; NULL: no memory */
    bool is_same;             /* a walk would come to the native frames of `entry` */
    uint64_t python;          /* signature of the interpreter's frames, then */
};

/* The number of the stack, if a walk from these registers in the calling thread would find it again, with the
 * same `around` it. Otherwise MEMO_NONE. `is_locked`: as for python_sign (python.h). */
uint32_t memo_stack(
    const struct unwind_registers *registers, uint64_t around, bool is_locked, struct memo *ret_memo);

/* Around the walk that fills the entry's trace. What a signal handler's walk has spoilt in between is not
 * kept. */
void memo_begin(struct memo *memo, const struct unwind_registers *registers, uint64_t around);
void memo_keep(struct memo *memo, const struct unwind_registers *registers, uint32_t stack);

/* The calling thread ends. */
void memo_free(void);

#endif
