/* Views: a model and its symbols, put into the rows and trees that people and formats ask for.
 *
 * Rows put every stack under exactly one frame, its *site*: the innermost source frame that is not allocation
 * plumbing (plumbing.h), so that the rows of any grouping add up to the total. */
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
    BY_STACK
};
/* SORT_PEAK: what was live when the whole heap was largest, which adds up. */
enum view_sort { SORT_LIVE, SORT_PEAK, SORT_TOTAL, SORT_ALLOCS, SORT_TEMPORARY };

/* What is asked for. */
struct view_query {
    enum view_by by;
    enum view_sort sort;
    const char *filter; /* POSIX extended regular expression, or NULL */
    bool raw_sites;     /* take the innermost frame as the site, plumbing or not */
};

/* Stands for a heap, type or scope in rows whose stacks do not have the same. */
#define VIEW_SEVERAL  "[several]"
#define VIEW_NO_TYPE  "[unknown]"  /* names the row of what has no type */
#define VIEW_NO_SCOPE "[no scope]" /* and of what was allocated in none */

/* One line of a report. Text belongs to the resolver, the model or the rows. Fields that the grouping does
 * not know are NULL or 0. */
struct view_row {
    const char *function, *file, *module;
    int line;
    const char *heap, *type, *scope; /* names that the program gave (model/stack_labels.h), NULL = none */
    struct figures figures;
    const struct model_stack *largest; /* the stack that contributes most to what is sorted by, or NULL */
};

struct view_rows {
    struct view_row *rows; /* sorted, largest first */
    size_t count;
    struct figures sum; /* over all rows; equals the model's totals when nothing was filtered out */
    char *text;         /* names made for the rows */
};

/* Groups the stacks' figures by the site's
 *     BY_SITE      function, file, line and module, and by heap and type,
 *     BY_LINE      file and line, whatever the function (`function` is NULL where several share the line),
 *     BY_FUNCTION, BY_FILE, BY_MODULE   that part alone.
 * What lacks the part asked for is grouped by the next coarser one it has: a site without a line by its
 * function, a file that is not known by the module. BY_HEAP, BY_TYPE and BY_SCOPE group by these names alone,
 * BY_SCOPE by the innermost scope. BY_STACK gives every stack a row of its own. BY_THREAD
 * gives the exact bytes of each thread as `total_bytes` and nothing else, as stacks are not kept per thread.
 * A row's `peak_bytes` is the sum of its stacks' own peaks, but never more than the peak of the whole heap:
 * an upper bound. The filter keeps the stacks in which any frame's function, file or module matches, or a
 * scope, the type or the heap; of threads, their names.
 */
int view_rows_query(const struct model *model, struct resolver *resolver, const struct view_query *query,
    struct view_rows *ret_rows, struct problem *problem);
void view_rows_free(struct view_rows *rows);

/* What tells a row apart from others that were grouped `by`: its naming fields but those that only describe
 * it. */
struct view_row view_row_key(enum view_by by, const struct view_row *row);
uint64_t view_row_hash(const struct view_row *key);
bool view_row_equal(const struct view_row *a, const struct view_row *b);

/* The same with sites as they are by default. */
int view_rows_make(const struct model *model, struct resolver *resolver, enum view_by by, enum view_sort sort,
    const char *filter, struct view_rows *ret_rows, struct problem *problem);

/* What rows and nodes are sorted by. */
double view_sort_value(const struct figures *figures, enum view_sort sort);

/* A call tree: root's children are the outermost frames, heaps if there are several. Node figures include
 * those of their children. */
struct view_node {
    const char *function, *file, *module;
    int line;
    struct figures figures;
    struct view_node *children; /* sorted by `sort`, largest first */
    size_t child_count;
};

/* Branches end at the site, with the scopes in it and the type of what was allocated; `by` is not used. NULL
 * on failure. */
struct view_node *view_tree_query(const struct model *model, struct resolver *resolver,
    const struct view_query *query, struct problem *problem);
void view_tree_free(struct view_node *root);

#endif
