/* What the recorder tells the hooks. */
#ifndef MALLOSCOPE_HOOK_HOOKS_H
#define MALLOSCOPE_HOOK_HOOKS_H

/* Sampled blocks carry a mark (or nothing will be sampled): blocks without one go straight to the allocator.
 * Until this is said, every free and realloc takes the cold path. */
void hooks_trust_marks(void);

#endif
