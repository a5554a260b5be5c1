/* Scopes: what each thread of the program says it is doing (malloscope.h).
 *
 * A thread's scopes are a stack of names' numbers, in memory of its own that is made with its first one. A
 * sample copies them behind its native frames: they stand around the whole native stack, the thread's name
 * around them. Of very deep ones the outer SCOPES_KEPT are kept. */
#ifndef MALLOSCOPE_HOOK_SCOPES_H
#define MALLOSCOPE_HOOK_SCOPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCOPES_KEPT 128u
#define SCOPES_ROOM (SCOPES_KEPT + 2) /* frames: and one that says that some are missing, and the thread */

struct scopes {
    uint32_t depth;   /* of all, also of those that are not kept */
    uint32_t ignored; /* > 0: what is allocated is not recorded */
    uint32_t thread;  /* number of the thread's name, 0 = not asked for yet */
    uint32_t asked;   /* how often it was looked at */
    uint32_t name[SCOPES_KEPT];
    uint64_t signature[SCOPES_KEPT + 2]; /* [d] stands for the outermost d: other scopes, other signature */
};

/* The calling thread's; NULL while it has none. */
extern __thread struct scopes *hook_scopes;

static inline bool scopes_ignore(void) {
    return __builtin_expect(hook_scopes != NULL, 0) && hook_scopes->ignored;
}

/* Stands for all that scopes_frames would write. */
static inline uint64_t scopes_signature(void) {
    const struct scopes *scopes = hook_scopes;
    if (__builtin_expect(!scopes, 1)) return 0;
    uint32_t depth = scopes->depth <= SCOPES_KEPT ? scopes->depth : SCOPES_KEPT + 1;
    return scopes->signature[depth] + scopes->thread;
}

/* Whether stacks end with the thread's name, and have scopes. Said once. */
void scopes_choose(bool threads, bool scopes);

/* Before scopes_signature and scopes_frames, for a sample: makes sure that the thread's name is known. */
void scopes_prepare(void);

/* Appends the frames of the calling thread's scopes, innermost first; at most SCOPES_ROOM. */
uint32_t scopes_frames(uint64_t *frames);

/* Scopes are noted from now on, or not any more. */
void scopes_switch(bool on);

/* The calling thread ends. */
void scopes_free(void);

#endif
