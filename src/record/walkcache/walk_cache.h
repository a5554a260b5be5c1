/* The walk cache: the number of the stack that a walk would find, without the walk. In exact mode every allocation
 * asks for its stack, and most come from a stack that was walked before.
 *
 * Each thread has a cache of its own. A look-up goes as follows:
 *
 *     pc, sp ──► read lists (read_lists.h): which words of the stack a walk from here reads
 *            ──► Σ word × factor over these words: a 64-bit hash, with a random odd factor for each position
 *            ──► hash ─► number of the stack
 *
 * All else that a stack depends on goes into the sum as well, each with a factor of its own: the frame pointer, if
 * the walk uses it; the scopes and the heap (`context`); the unwinder's epoch, which changes when libraries come or
 * go. With an interpreter many lines of Python allocate from the same native frames: the fingerprint of the Python
 * frames (python.h) is added to the sum of the native ones.
 *
 * Two different stacks get one hash with a probability of about 2⁻⁶⁴, because the factors are random.
 *
 * The cache grows with the recording, for as long as walks are made that a larger one would have spared. It covers
 * the stack that the thread was started with. Stacks of coroutines and of signal handlers are walked each time:
 * their memory may have been given to others since. A signal handler that interrupts the thread while it uses its
 * cache does without one. */
#ifndef MALLOSCOPE_RECORD_WALKCACHE_WALK_CACHE_H
#define MALLOSCOPE_RECORD_WALKCACHE_WALK_CACHE_H

#include "core/recording.h"
#include "unwind/unwind.h"

#include <stddef.h>

#define WALK_UNKNOWN UINT32_MAX

/* What a look-up that did not find the stack leaves for walk_cache_keep. */
struct walk_lookup {
    struct walk_cache *cache;   /* held by the caller; NULL: there is none, and nothing is to be kept */
    struct unwind_trace *trace; /* to be filled by the walk; NULL: the native frames are known already */
    uint64_t context;           /* the part of the sum that does not come from the stack */
    uint64_t native;            /* the sum of the native frames, if they are known */
    uint64_t python; /* fingerprint of the Python frames; 0: there are none. To be filled by the walk */
};

/* The number of the stack that a walk from these registers in the calling thread would find. `context` stands for
 * the scopes and the heap. `is_locked`: as for python_fingerprint (python.h).
 *
 * WALK_UNKNOWN: the walk has to be made. If `ret_lookup->cache` is not NULL then, walk_cache_keep must be called
 * after the walk. */
uint32_t walk_cache_find(const struct unwind_registers *registers, const struct thread_record *thread,
    uint64_t context, bool is_locked, struct walk_lookup *ret_lookup);

/* Keeps the result of the walk, and lets go of the cache. `stack` may be WALK_UNKNOWN: the walk came to nothing. */
void walk_cache_keep(struct walk_lookup *lookup, const struct unwind_registers *registers, uint32_t stack);

/* The memory that the caches of all threads take. */
size_t walk_cache_bytes(void);

/* Frees the calling thread's cache: the thread ends, or is alone in a forked child. */
void walk_cache_free(void);

#endif
