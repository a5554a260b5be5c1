/* Views: a model and its symbols, put into the rows and trees that people and formats ask for. */
#ifndef MALLOSCOPE_VIEW_VIEW_H
#define MALLOSCOPE_VIEW_VIEW_H

#include "model/model.h"
#include "symbol/symbol.h"

enum view_by { BY_SITE, BY_FUNCTION, BY_LINE, BY_FILE, BY_MODULE, BY_THREAD, BY_STACK };
enum view_sort { SORT_LIVE, SORT_PEAK, SORT_TOTAL, SORT_ALLOCS, SORT_TEMPORARY };

/* One line of a report. Text belongs to the resolver or the model. Fields that the grouping does not know are
 * NULL or 0. */
struct view_row {
    const char *function, *file, *module;
    int line;
    struct figures figures;
    const struct model_stack *largest; /* the stack that contributes most, for `--verbose` */
};

struct view_rows {
    struct view_row *rows;
    size_t count;
};

/* Groups the stacks' figures. BY_SITE and BY_LINE group by the source line of the innermost frame; BY_FUNCTION, BY_FILE and BY_MODULE likewise by its
 * function, file and module (so that rows add up to the total). `filter` (POSIX extended regular
 * expression, may be NULL) keeps the stacks in which any frame's function, file or module matches. */
int view_rows_make(const struct model *model, struct resolver *resolver, enum view_by by, enum view_sort sort,
    const char *filter, struct view_rows *ret_rows, struct problem *problem);
void view_rows_free(struct view_rows *rows);

/* A call tree: root's children are the outermost frames. Node figures include those of their children. */
struct view_node {
    const char *function, *file, *module;
    int line;
    struct figures figures;
    struct view_node *children; /* sorted by `sort`, largest first */
    size_t child_count;
};

struct view_node *view_tree_make(const struct model *model, struct resolver *resolver, enum view_sort sort);
void view_tree_free(struct view_node *root);

#endif
