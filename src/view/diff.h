/* What changed between two recordings, line by line, and which changes are real.
 *
 * Lines are matched by what they are called, never by address: function, file and library without their
 * folders, heap, type and scope. Two recordings are independent samples, so the variance of a change is the
 * sum of both variances. A change is significant if chance would make one as large on *any* of the lines in
 * fewer than 5 of 100 comparisons of equal programs (docs/sampling.md). */
#ifndef MALLOSCOPE_VIEW_DIFF_H
#define MALLOSCOPE_VIEW_DIFF_H

#include "view/view.h"

/* What is compared. */
enum diff_value {
    DIFF_LIVE,
    DIFF_PEAK,
    DIFF_TOTAL,
    DIFF_OBJECTS, /* from here on objects, before it bytes */
    DIFF_PEAK_OBJECTS,
    DIFF_ALLOCATIONS
};
#define DIFF_VALUES 6

static inline bool diff_counts_objects(enum diff_value value) {
    return value >= DIFF_OBJECTS;
}

struct diff_side {
    const struct view_rows *rows;
    bool at_peak;  /* what was live at its peak stands for what is live */
    uint64_t rate; /* the largest of any heap: 1 = exact */
};

/* What is compared, of any figures of that side. */
struct estimate diff_figure(
    const struct figures *figures, enum diff_value value, const struct diff_side *side);

struct diff_row {
    const struct view_row *row; /* of the newer side, or of the older if it is not there */
    struct estimate base, fresh;
    double change, error; /* half the width of its 95 % interval */
    bool significant;
};

struct diff {
    struct diff_row *rows; /* significant ones first, then largest changes first */
    size_t count, significant_count;
    struct diff_row total; /* its `row` is NULL */
};

/* The rows of both sides are grouped by `by`. */
void diff_make(const struct diff_side *base, const struct diff_side *fresh, enum diff_value value,
    enum view_by by, struct diff *ret_diff);
void diff_free(struct diff *diff);

/* What makes a change significant among so many lines: each may raise a false alarm with its share of the
 * doubt. */
struct diff_judge {
    double deviation; /* it is larger than so many standard deviations */
    double doubt;     /* and less likely than this to be bytes that one side missed by chance */
    double rate;
};
struct diff_judge diff_judge_of(size_t lines, const struct diff_side *base, const struct diff_side *fresh);

#endif
