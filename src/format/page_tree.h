/* What pages of one and of two recordings have in common: the call tree, the names in it, and the lines of source
 * that it leads to. */
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
    struct intern_table files,
        modules; /* by whole path; a page shows only the end of a path, which others may share */
    uint32_t *
        frame_number; /* for each frame of the flame, its number in the page; FLAME_NONE: it is not written */
    struct json json;
};

/* Chooses the frames that are written, and numbers them: those that nodes name, and `others`. */
void page_tree_choose_frames(struct page_tree *tree, const uint32_t *others, size_t other_count);

/* The numbers of texts in the page. A text is added if it is new. */
uint32_t page_tree_text(struct page_tree *tree, const char *text);
uint32_t page_tree_short_name(struct page_tree *tree, const char *function);
/* -1 if the path is NULL. */
int64_t page_tree_file(struct page_tree *tree, const char *path);
int64_t page_tree_module(struct page_tree *tree, const char *path);

/* Writes frames, nodes, and all texts that have a number. */
void page_tree_write(struct page_tree *tree);
/* Writes the lines of source around those of the frames, unless the options say otherwise. */
void page_tree_write_sources(struct page_tree *tree, const struct model *model);
void page_tree_free(struct page_tree *tree);

/* Writes one object: the program, and when and how long it ran. */
void page_tree_write_process(
    struct json *json, const struct page_options *options, const struct model_process *process);

/* The last `parts` parts of a path; the whole path if the options ask for whole paths, which may tell more about
 * its author than he wants to share. */
const char *page_tree_path(const struct page_options *options, const char *path, int parts);
/* Writes a string for each line of `text` that is not empty. `text` may be NULL. */
void page_tree_write_lines(struct json *json, const char *text);
/* Writes a variance with six digits. It is an estimate itself, and not worth more. */
void page_tree_write_variance(struct json *json, double variance);

#endif
