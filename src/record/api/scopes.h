/* Scopes: what each thread of the program says it is doing (malloscope.h).
 *
 * A thread's scopes are a stack of names' numbers, in memory of its own that is made with its first one. They
 * become frames of its samples: a scope stands inside the function that entered it and around those that were
 * called since, which is told by where the stack pointer was; the thread's name stands around everything.
 *
 *     main ─ serve ─ ‹request› ─ handle ─ parse ─ ‹json› ─ malloc
 *
 * Of very deep ones the outer SCOPES_KEPT are kept. */
#ifndef MALLOSCOPE_RECORD_API_SCOPES_H
#define MALLOSCOPE_RECORD_API_SCOPES_H

#ifndef MSCOPE_LINKED
#define MSCOPE_LINKED
#endif
#include "malloscope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCOPES_KEPT MSCOPE_SCOPES_KEPT
#define SCOPES_ROOM (SCOPES_KEPT + 2) /* frames: and one that says that some are missing, and the thread */

/* The calling thread's; NULL while it has none. */
extern __thread struct mscope_scopes *scopes_of_thread;

static inline bool scopes_ignore(void) {
    return __builtin_expect(scopes_of_thread != NULL, 0) && scopes_of_thread->ignored;
}

/* Stands for all that scopes_merge would add: other scopes, other signature. */
uint64_t scopes_make_fingerprint(const struct mscope_scopes *scopes);

static inline uint64_t scopes_fingerprint(void) {
    return __builtin_expect(scopes_of_thread != NULL, 0) ? scopes_make_fingerprint(scopes_of_thread) : 0;
}

/* Whether stacks end with the thread's name, and have scopes. Said once. */
void scopes_choose(bool threads, bool scopes);

/* For a sample, first: makes sure that the thread's name is known. */
void scopes_prepare(void);

static inline bool scopes_are_open(void) {
    return __builtin_expect(scopes_of_thread != NULL, 0) && scopes_of_thread->depth;
}

/* Puts the calling thread's scopes and its name among the `count` frames of its stack, which lies between
 * `low` and `high` and whose stack pointers are `places` (NULL: no scope is open). There is room for
 * SCOPES_ROOM more. Returns how many frames they are now. */
uint32_t scopes_merge(uint64_t *frames, const uint64_t *places, uint32_t count, uint64_t low, uint64_t high);

/* Scopes are noted from now on, or not any more. */
void scopes_switch(bool on);

/* The calling thread ends. */
void scopes_free(void);

#endif
