/* Views: the rows and trees that commands print and formats write, made of a model and its symbols.
 *
 * Each stack has one *site*: its innermost source frame that is no allocation wrapper (allocation_wrapper.h). A row
 * holds the stacks whose sites are grouped together. Each stack is in exactly one row, so that the rows of any
 * grouping add up to the total. */
#ifndef MALLOSCOPE_VIEW_VIEW_H
#define MALLOSCOPE_VIEW_VIEW_H

#include "model/model.h"
#include "symbol/symbol.h"

enum view_by {
    BY_SITE,
    BY_FUNCTION,
    BY_LINE,
    BY_FILE,
    BY_MODULE,
    BY_THREAD,
    BY_HEAP,
    BY_TYPE,
    BY_SCOPE,
    BY_STACK,
    BY_PROCESS
};
/* SORT_PEAK sorts by what was live when the whole heap was largest: figures.at_peak_bytes, which adds up, and not
 * figures.own_peak_bytes, which does not. */
enum view_sort { SORT_LIVE, SORT_PEAK, SORT_TOTAL, SORT_ALLOCS, SORT_TEMPORARY };

/* What is asked for. */
struct view_query {
    enum view_by by;
    enum view_sort sort;
    const char *filter; /* POSIX extended regular expression; NULL: keep all stacks */
    bool raw_sites;     /* the site is the innermost call, even if that is an allocation wrapper */
};

#define VIEW_SEVERAL  "[several]"  /* the heap, type or scope of a row whose stacks have different ones */
#define VIEW_NO_TYPE  "[unknown]"  /* names the row of stacks without a type */
#define VIEW_NO_SCOPE "[no scope]" /* names the row of stacks that are in no scope */

/* One line of a report. The texts belong to the resolver, the model or the rows. Fields that the grouping does not
 * tell are NULL or 0. */
struct view_row {
    const char *function, *file, *module;
    int line;
    const char *heap, *type, *scope; /* as in model/stack_labels.h; NULL: none */
    struct figures figures;
    const struct model_stack *largest; /* its stack with the largest value of what is sorted by; or NULL */
};

struct view_rows {
    struct view_row *rows; /* sorted, largest first */
    size_t count;
    struct figures sum; /* of all rows; equals the model's totals if nothing was filtered out */
    char *text;         /* memory for names that were made for the rows */
};

/* Groups the stacks by
 *     BY_SITE      function, file, line and module of the site, and by heap and type
 *     BY_LINE      file and line of the site; `function` is NULL if several functions share the line
 *     BY_FUNCTION, BY_FILE, BY_MODULE   that part of the site alone
 *     BY_HEAP, BY_TYPE, BY_SCOPE        that name alone; BY_SCOPE by the innermost scope
 *     BY_STACK     each stack has a row of its own
 *     BY_PROCESS   the process; `peak_bytes` is that of its heap
 *     BY_THREAD    each thread has a row, with its exact bytes as `total_bytes` and its samples; nothing else is known,
 *                  since stacks are not kept by thread
 * A site that lacks the part asked for is grouped by the next coarser part that it has: without a line by its
 * function, without a file by its module.
 *
 * `own_peak_bytes` of a row is an upper bound: the sum of its stacks' own peaks, but not more than the peak of the
 * whole heap.
 *
 * The filter keeps a stack if the function, file or module of any of its frames matches, or a scope, its type or
 * its heap. It keeps a thread if its name matches. */
int view_rows_query(const struct model *model, struct resolver *resolver, const struct view_query *query,
    struct view_rows *ret_rows, struct problem *problem);
void view_rows_free(struct view_rows *rows);

/* The fields of a row by which rows of that grouping differ. The others, which only describe the row, are NULL. */
struct view_row view_row_key(enum view_by by, const struct view_row *row);
uint64_t view_row_hash(const struct view_row *key);
bool view_row_equal(const struct view_row *a, const struct view_row *b);

/* view_rows_query without raw sites. */
int view_rows_make(const struct model *model, struct resolver *resolver, enum view_by by, enum view_sort sort,
    const char *filter, struct view_rows *ret_rows, struct problem *problem);

/* The figure that rows and nodes are sorted by. */
struct estimate view_sort_estimate(const struct figures *figures, enum view_sort sort);
double view_sort_value(const struct figures *figures, enum view_sort sort);

/* A call tree. The root's children are the outermost frames: heaps if the model has heaps besides malloc's. The
 * figures of a node include those of its children. */
struct view_node {
    const char *function, *file, *module;
    int line;
    struct figures figures;
    struct view_node *children; /* sorted by `sort`, largest first */
    size_t child_count;
};

/* Branches are as in stack_tree.h. Of the query, `by` is not used. NULL: the filter is no regular expression. */
struct view_node *view_tree_query(const struct model *model, struct resolver *resolver,
    const struct view_query *query, struct problem *problem);
void view_tree_free(struct view_node *root);

#endif
