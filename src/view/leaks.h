/* Leaks: which live memory was probably lost, and why.
 *
 * A recording knows nothing of pointers, so it is not known which blocks can still be reached. What tells a leak is
 * when the live blocks of a place were allocated, and whether and at which age other blocks from there were freed
 * (docs/sampling.md, 8):
 *
 *     births of the live     ▁▁▁▁▁▁▁█  a cache, or work in progress       █▁▁▁▁▁▁▁  tables made at start-up
 *     blocks over the run    ▅▅▅▅▅▅▅▅  a leak: every part of the run has left blocks behind
 */
#ifndef MALLOSCOPE_VIEW_LEAKS_H
#define MALLOSCOPE_VIEW_LEAKS_H

#include "view/suppressions.h"
#include "view/view.h"

enum leak_kind {
    LEAK_GROWING, /* blocks are left behind all along the run, and freed at such an age hardly ever or never */
    LEAK_OUTLIVING,   /* other blocks from there are freed, but nearly all at a lower age than these have */
    LEAK_NEVER_FREED, /* nothing from there was ever freed */
    /* Those below are no likely leaks. */
    LEAK_IN_USE,   /* other blocks are freed at that age: a cache, or work in progress */
    LEAK_START_UP, /* all were allocated early in the run */
};

static inline bool leaks_is_likely(enum leak_kind kind) {
    return kind < LEAK_IN_USE;
}

/* What has to be known about the recording to judge. */
struct leak_scene {
    bool exact;
    bool has_exited; /* the program has ended by itself, so that all it wanted to free is freed */
    bool from_start; /* it was recorded from its start on */
    double duration; /* seconds; of several processes the longest */
};

struct leak {
    enum leak_kind kind;
    const struct view_row *row; /* NULL from leaks_judge */
    bool never_freed;
    bool inherited; /* the parent process allocated all of it, before the fork */
    unsigned
        parts; /* how many of the BIRTH_PARTS of the run have left blocks behind for longer than others live */
    uint64_t outliving; /* live samples that are older than nearly all blocks were when they were freed */
    double freed_later; /* objects that were freed at such an age: few */
    /* It is a likely leak because nothing was freed, but that rests on fewer than about five samples and may be
     * chance. Large blocks are nearly always sampled, so that few samples of them are enough. */
    bool uncertain;
    double growth; /* bytes per second: live bytes that were allocated in the second half of the run */
};

struct leak leaks_judge(const struct figures *figures, const struct leak_scene *scene);

struct leak_scene leaks_scene_of(const struct model *model);

struct leaks {
    struct leak
        *list;    /* growing ones, other likely ones, in use, start-up; within each kind the largest first */
    size_t count; /* all entries that have live memory */
    struct figures likely, in_use, start_up;
    struct figures suppressed;
    struct figures held; /* kept by the C library for itself (c_library_keeps.h) */
    struct view_rows rows;
    struct model_stack *stacks; /* copies of the model's, which the rows point to */
};

/* Judges each row of a query by its own figures. Coarse rows rest on more samples; fine rows do not mix lost blocks
 * with others. `suppressions` may be NULL. Marks suppressions that matched live memory as used. */
int leaks_find(const struct model *model, struct resolver *resolver, const struct view_query *query,
    struct suppressions *suppressions, struct leaks *ret_leaks, struct problem *problem);
void leaks_free(struct leaks *leaks);

#endif
