/* Scopes: what each thread of the program says it is doing (malloscope.h).
 *
 * A thread has a stack of scopes, each with the number of its name. It lies in memory of the thread's own, which is
 * mapped when the thread enters its first scope. Scopes become frames of the thread's samples. A scope stands inside
 * the function that entered it, and around the functions that were called since. The stack pointer at the moment of
 * entering (the scope's place) tells where that is. The thread's name, if it is wanted, stands around everything.
 *
 *     main ─ serve ─ ‹request› ─ handle ─ parse ─ ‹json› ─ malloc
 *
 * When scopes nest deeper than SCOPES_KEPT, the outermost SCOPES_KEPT are kept. */
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
/* The most frames that scopes_merge adds: the scopes, one that says that scopes are missing, and the thread. */
#define SCOPES_ROOM (SCOPES_KEPT + 2)

/* The calling thread's scopes; NULL while it has none. MSCOPE_SCOPE in malloscope.h changes them without a call. */
extern __thread struct mscope_scopes *scopes_of_thread;

/* Whether the calling thread is between mscope_ignore_begin and mscope_ignore_end. */
static inline bool scopes_ignore(void) {
    return __builtin_expect(scopes_of_thread != NULL, 0) && scopes_of_thread->ignored;
}

/* A hash of all that scopes_merge would add. */
uint64_t scopes_make_fingerprint(const struct mscope_scopes *scopes);

static inline uint64_t scopes_fingerprint(void) {
    return __builtin_expect(scopes_of_thread != NULL, 0) ? scopes_make_fingerprint(scopes_of_thread) : 0;
}

/* Whether threads' names, and scopes, become frames. To be called once, before anything is recorded. */
void scopes_choose(bool threads, bool scopes);

/* To be called first for each sample: makes sure that the thread's name is known, if it is wanted. */
void scopes_prepare(void);

static inline bool scopes_are_open(void) {
    return __builtin_expect(scopes_of_thread != NULL, 0) && scopes_of_thread->depth;
}

/* Puts the calling thread's scopes and its name among the `count` frames of its stack. `places` are the stack pointers
 * of the frames (NULL: no scope is open); the stack lies between the addresses `low` and `high`. `frames` has room for
 * SCOPES_ROOM more. Returns the number of frames. */
uint32_t scopes_merge(uint64_t *frames, const uint64_t *places, uint32_t count, uint64_t low, uint64_t high);

/* Switches the noting of scopes on or off, for all threads. */
void scopes_switch(bool on);

/* Frees the scopes of the calling thread, which ends. */
void scopes_free(void);

#endif
