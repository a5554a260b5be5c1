/* What a thread's walks came to: in exact mode most allocations come from a stack that was walked before.
 *
 * A walk depends on the registers it starts from and on the words it reads from the stack. Where it reads
 * them, its list, is known from the walks that started at the same place. The words on the list, the
 * modules and whatever else a stack is made of (scopes, heap) are summed up to 64 bits, with a random
 * factor for each; by this sum the number of the stack is found. With an interpreter, many
 * lines of Python come from the same native frames: the signature of the interpreter's frames is summed up
 * too.
 *
 * Each thread has its own, in memory that only it uses, and for the stack that it was made with. It grows
 * with the stacks of the recording, for as long as walks are made again for want of room (growing_sets.h). A signal
 * handler that comes while the memory is in use does without. */
#ifndef MALLOSCOPE_RECORD_WALKCACHE_WALK_CACHE_H
#define MALLOSCOPE_RECORD_WALKCACHE_WALK_CACHE_H

#include "core/recording.h"
#include "unwind/unwind.h"

#define WALK_UNKNOWN UINT32_MAX

/* What is known of a stack. */
struct walk_lookup {
    struct walk_cache *cache;   /* NULL: there is none, and nothing to be kept */
    struct unwind_trace *trace; /* to be filled by the walk; NULL: the native frames are known */
    uint64_t around;            /* what the walk depends on besides the stack */
    uint64_t native;            /* the sum of the native frames, if they are known */
    uint64_t python;            /* signature of the interpreter's frames (python.h); 0: none */
};

/* The number of the stack, if a walk from these registers in the calling thread would find it again, with the
 * same `around` it. Otherwise WALK_UNKNOWN. `is_locked`: as for python_sign (python.h). */
uint32_t walk_cache_find(const struct unwind_registers *registers, const struct thread_record *thread,
    uint64_t around, bool is_locked, struct walk_lookup *ret_lookup);

/* The walk that is made then came to `stack`, which may be WALK_UNKNOWN. */
void walk_cache_keep(struct walk_lookup *lookup, const struct unwind_registers *registers, uint32_t stack);

/* The calling thread ends. */
void walk_cache_free(void);

#endif
