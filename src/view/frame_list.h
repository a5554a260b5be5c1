/* The distinct frames of any number of stacks, each listed and numbered once. */
#ifndef MALLOSCOPE_VIEW_FRAME_LIST_H
#define MALLOSCOPE_VIEW_FRAME_LIST_H

#include "base/hash_index.h"
#include "view/source_frames.h"

#define FRAME_NONE UINT32_MAX

/* When two frames count as equal. */
enum frame_match {
    MATCH_PLACES, /* function, line, file and module are equal: right within one recording */
    MATCH_LINES, /* as MATCH_PLACES, but files and modules are compared without their folders, which differ from build
                     to build; and modules only where the file is not known */
    MATCH_NAMES /* as MATCH_LINES, but lines are not compared, since they move when a source is edited. Listed frames
                     have line 0. */
};

struct listed_frame {
    const char *function, *file, *module; /* as in struct view_row */
    int line;
    bool inlined;
    bool interpreted; /* as in struct symbol */
    bool given;       /* the program named it: a scope, a type, a heap or a thread, and no code */
};

/* Zeroed but for `match`. */
struct frame_list {
    enum frame_match match;
    struct listed_frame *frames; /* by number */
    uint32_t count, capacity;
    struct hash_index index;
    struct recent_frame *recent; /* a cache, by the addresses of symbol and module */
};

/* The number of the frame. It is added if this is the first that equals it. */
uint32_t frame_list_number(struct frame_list *list, const struct source_frame *frame);

/* Hands the frames to the caller, who frees them. The list is empty then. */
struct listed_frame *frame_list_take(struct frame_list *list);

#endif
