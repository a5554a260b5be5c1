/* What changed between two recordings, line by line, and which changes are more than chance.
 *
 * Rows of both recordings become one line if their names are equal: function, file and module without their
 * folders, heap, type and scope. Addresses are not compared. Two recordings are independent samples, so that the
 * variance of a change is the sum of both variances. A change is significant if, in comparisons of two recordings
 * of one program, a change as large on *any* of the lines comes up in fewer than 5 of 100 comparisons
 * (docs/sampling.md). */
#ifndef MALLOSCOPE_VIEW_DIFF_H
#define MALLOSCOPE_VIEW_DIFF_H

#include "view/view.h"

/* Which figure is compared. */
enum diff_value {
    DIFF_LIVE,
    DIFF_PEAK,
    DIFF_TOTAL,
    DIFF_OBJECTS, /* this one and those below are objects, those above are bytes */
    DIFF_PEAK_OBJECTS,
    DIFF_ALLOCATIONS
};
#define DIFF_VALUES 6

static inline bool diff_counts_objects(enum diff_value value) {
    return value >= DIFF_OBJECTS;
}

struct diff_side {
    const struct view_rows *rows;
    bool at_peak;  /* compare what was live at its peak instead of what is live */
    uint64_t rate; /* the largest sampling interval of its heaps; 1: exact */
};

/* The figure that is compared, out of figures of that side. */
struct estimate diff_figure(
    const struct figures *figures, enum diff_value value, const struct diff_side *side);

struct diff_row {
    const struct view_row *row; /* of the new side; of the base if the new side has no such row */
    struct estimate base, fresh;
    double change, error; /* error: half the width of the 95 % interval of the change */
    bool significant;
};

struct diff {
    struct diff_row *rows; /* significant ones first, then largest changes first */
    size_t count, significant_count;
    struct diff_row total; /* `row` is NULL */
};

/* The rows of both sides are grouped by `by`. */
void diff_make(const struct diff_side *base, const struct diff_side *fresh, enum diff_value value,
    enum view_by by, struct diff *ret_diff);
void diff_free(struct diff *diff);

/* What makes a change significant in a comparison of so many lines. The doubt of 5 % is divided among the lines,
 * each of which may raise a false alarm. */
struct diff_judge {
    double deviation; /* it is larger than so many standard deviations, */
    double doubt; /* and the probability that one side missed so many bytes by chance is smaller than this */
    double rate;  /* the larger sampling interval of both sides */
};
struct diff_judge diff_judge_of(size_t lines, const struct diff_side *base, const struct diff_side *fresh);

#endif
