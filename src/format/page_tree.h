/* What every page has: the call tree, the names in it, and the lines of source that it leads to. */
#ifndef MALLOSCOPE_FORMAT_PAGE_TREE_H
#define MALLOSCOPE_FORMAT_PAGE_TREE_H

#include "format/format.h"
#include "format/intern_table.h"
#include "format/json.h"
#include "view/flame.h"

/* Zeroed but for the options and the flame. */
struct page_tree {
    const struct page_options *options;
    struct flame flame;
    struct intern_table strings;
    struct intern_table files, modules; /* by whole path: a page shows only its end, which others may share */
    uint32_t *frame_number; /* of each frame of the flame among those written, FLAME_NONE = not needed */
    struct json json;
};

/* Numbers the frames that nodes name, and `others`. */
void page_tree_choose_frames(struct page_tree *tree, const uint32_t *others, size_t other_count);

/* Numbers of texts in the page. */
uint32_t page_tree_text(struct page_tree *tree, const char *text);
uint32_t page_tree_short_name(struct page_tree *tree, const char *function);
/* -1 for NULL. */
int64_t page_tree_file(struct page_tree *tree, const char *path);
int64_t page_tree_module(struct page_tree *tree, const char *path);

/* Frames, nodes, and all texts that have a number. */
void page_tree_write(struct page_tree *tree);
/* Lines around those of the frames, unless they are not wanted. */
void page_tree_write_sources(struct page_tree *tree, const struct model *model);
void page_tree_free(struct page_tree *tree);

/* One object: the program, and when and how long it ran. */
void page_tree_write_process(
    struct json *json, const struct page_options *options, const struct model_process *process);

/* A path tells where somebody keeps things: the last `parts` of it will do, unless all was asked for. */
const char *page_tree_path(const struct page_options *options, const char *path, int parts);
/* A string for each line that is not empty. NULL is none. */
void page_tree_write_lines(struct json *json, const char *text);
/* Six digits are more than an estimate of a variance is worth. */
void page_tree_write_variance(struct json *json, double variance);

#endif
