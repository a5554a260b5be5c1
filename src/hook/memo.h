/* What a thread's recent walks came to: in exact mode most allocations come from a stack that was walked a
 * moment ago.
 *
 * An entry holds the registers a walk started from, the words it read from the stack, and the number of the
 * stack it found. Where all of them are as they were, and the modules too, the stack is the same one, and
 * neither the walk nor the search in the stack table is needed. Each thread has its own, in memory that only
 * it uses. */
#ifndef MALLOSCOPE_HOOK_MEMO_H
#define MALLOSCOPE_HOOK_MEMO_H

#include "unwind/unwind.h"

#define MEMO_NONE UINT32_MAX

struct memo_entry {
    uint64_t pc, sp, fp; /* pc 0: not valid */
    uint64_t epoch;      /* of the modules, when the walk began */
    uint64_t around;     /* what else the stack is made of: the thread's scopes, the heap */
    uint64_t python;     /* the interpreter's frames (python.h) */
    uint32_t stack;
    bool recent; /* used later than the other one of its set */
    struct unwind_trace trace;
};

/* The number of the stack, if a walk from these registers in the calling thread would find it again, with the
 * same `around` it. Otherwise MEMO_NONE, and `*ret_entry` is to be filled by the walk; it is NULL when there
 * is no memory for a memo. */
uint32_t memo_stack(const struct unwind_registers *registers, uint64_t around, struct memo_entry **ret_entry);

/* Around the walk that fills the entry's trace. What a signal handler's walk has spoilt in between is not
 * kept. */
void memo_begin(struct memo_entry *entry, const struct unwind_registers *registers, uint64_t around);
void memo_keep(
    struct memo_entry *entry, const struct unwind_registers *registers, uint32_t stack, uint64_t python);

/* The calling thread ends. */
void memo_free(void);

#endif
