/* Distinct frames of any number of stacks, each listed once. */
#ifndef MALLOSCOPE_VIEW_FRAME_LIST_H
#define MALLOSCOPE_VIEW_FRAME_LIST_H

#include "view/source_frames.h"

#define FRAME_NONE UINT32_MAX

/* Which frames are the same. */
enum frame_match {
    MATCH_PLACES, /* function, line, file and library: within one recording */
    MATCH_LINES,  /* the same without folders, which differ from build to build */
    MATCH_NAMES   /* nor lines, which move when a source is edited; what is listed has no line then */
};

struct listed_frame {
    const char *function, *file, *module; /* as in struct view_row */
    int line;
    bool inlined;
    bool interpreted; /* as in struct symbol */
    bool given;       /* no code: a scope, a type, a heap, a thread */
};

/* Zeroed but for `match`. */
struct frame_list {
    enum frame_match match;
    struct listed_frame *frames;
    uint32_t count, capacity;
    uint32_t *index;             /* frame + 1, open addressing, twice the capacity */
    struct recent_frame *recent; /* frames met lately, found by where their symbols are */
};

/* The number of the frame in the list, which gets it if need be. FRAME_NONE: out of memory. */
uint32_t frame_list_number(struct frame_list *list, const struct source_frame *frame);

/* The frames, for the caller to free; the list is empty then. */
struct listed_frame *frame_list_take(struct frame_list *list);

#endif
