/* Leaks: which of what is live was probably lost, and why.
 *
 * Nothing is known of pointers, so nothing is known of what can be reached; what tells a leak is time
 * (docs/sampling.md, 8):
 *
 *     births of what is live     ▁▁▁▁▁▁▁█  a cache, work under way      █▁▁▁▁▁▁▁  tables made at start-up
 *     over the run               ▅▅▅▅▅▅▅▅  a leak: all times have left something behind
 *
 * together with whether anything from there is ever freed, and at which age. */
#ifndef MALLOSCOPE_VIEW_LEAKS_H
#define MALLOSCOPE_VIEW_LEAKS_H

#include "view/suppressions.h"
#include "view/view.h"

enum leak_kind {
    LEAK_GROWING,     /* left behind all along the run, and not freed at such an age or at all */
    LEAK_OUTLIVING,   /* others are freed, these are older than nearly all of them became */
    LEAK_NEVER_FREED, /* nothing from there was ever freed */
    /* The following are no likely leaks. */
    LEAK_IN_USE,   /* others are freed at that age: a cache, or work under way */
    LEAK_START_UP, /* allocated early and no more since */
};

static inline bool leaks_is_likely(enum leak_kind kind) {
    return kind < LEAK_IN_USE;
}

/* How a program was recorded, as far as it matters. */
struct leak_scene {
    bool exact;
    bool has_exited; /* by itself: what was to be freed has been */
    bool from_start; /* recorded from its start on */
    double duration; /* seconds; of several processes the longest */
};

struct leak {
    enum leak_kind kind;
    const struct view_row *row; /* NULL from leaks_judge */
    bool never_freed;
    bool inherited;     /* from the parent process, which allocated all of it */
    unsigned parts;     /* of BIRTH_PARTS, how many have left something behind for longer than others live */
    uint64_t outliving; /* live samples that are older than nearly any that was freed */
    double freed_later; /* objects that were freed when they were as old: few */
    /* Likely, but it rests on fewer than about five samples: that none was freed may be chance. Large blocks
     * are seen nearly always, so that few of them are enough. */
    bool uncertain;
    double growth; /* bytes per second in the second half of the run, of what is live */
};

struct leak leaks_judge(const struct figures *figures, const struct leak_scene *scene);

struct leak_scene leaks_scene_of(const struct model *model);

struct leaks {
    struct leak *list; /* those that grow, other likely ones, in use, start-up; in each the largest first */
    size_t count;      /* all with something live */
    struct figures likely, in_use, start_up;
    struct figures suppressed;
    struct figures held; /* by the C library for itself (library_held.h) */
    struct view_rows rows;
    struct model_stack *stacks; /* copies, which rows point to */
};

/* The entries of a query, judged by their own figures: coarser entries have more samples to tell by, finer
 * ones do not mix what is lost with what is not. `suppressions` may be NULL. */
int leaks_find(const struct model *model, struct resolver *resolver, const struct view_query *query,
    struct suppressions *suppressions, struct leaks *ret_leaks, struct problem *problem);
void leaks_free(struct leaks *leaks);

#endif
