/* The data of the HTML page of a comparison: one JSON object of two recordings, like that of page_data.h.
 *
 *     comparison   the two sides, and what makes the change of a call significant among all calls
 *     frames, nodes, strings, files, modules, sources                                        (page_tree.h)
 *     rows         what was allocated at a node itself, in the new recording and in the base
 *     lines        the lines of the diff: their names once, and their figures for each value
 */
#ifndef MALLOSCOPE_FORMAT_PAGE_DIFF_H
#define MALLOSCOPE_FORMAT_PAGE_DIFF_H

#include "format/format.h"
#include "view/diff.h"

struct page_side {
    const struct model *model;
    struct resolver *resolver;
    struct diff_side diff;
    const char *source; /* as the user named it */
    double seconds;     /* live figures count what was allocated up to then; < 0: all */
};

struct page_comparison {
    struct page_side base, fresh;
    enum view_by by;
    enum diff_value value; /* that the page shows first */
};

int page_diff_write(const struct page_options *options, FILE *out, struct problem *problem);

#endif
