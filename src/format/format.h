/* Formats: a model and its symbols, written for other tools. Each format has its own file; the list of them is in
 * format.c.
 *
 *     name        file        for
 *     pprof       pprof.c     pprof and everything that reads profile.proto
 *     heap        heap_text.c google-pprof and pprof; the values are the estimates
 *     heap_v2     heap_text.c google-pprof and pprof; they rescale, so the values are scaled down first
 *     speedscope  speedscope.c  flame graphs in speedscope
 *     chrome      chrome.c    Chrome's trace viewer; several recordings of a program become several moments
 *     chrome-v1   chrome.c    Chrome's trace viewer, also older versions
 *     collapsed   collapsed.c flame graph scripts: root;…;leaf VALUE
 *     json        json_dump.c everything that the model knows
 *     csv         csv.c       the rows of the report
 *     html        html.c      a page for people, in one file
 */
#ifndef MALLOSCOPE_FORMAT_FORMAT_H
#define MALLOSCOPE_FORMAT_FORMAT_H

#include "model/model.h"
#include "symbol/symbol.h"
#include "view/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The figure that a format writes, if it can hold one, or shows first. */
enum value_kind {
    VALUE_LIVE, /* live bytes */
    VALUE_PEAK, /* bytes live when the whole heap was largest; formats with columns for live figures put them there */
    VALUE_TOTAL,   /* bytes ever allocated */
    VALUE_OBJECTS, /* live objects */
};

/* What the page shows. */
struct page_options {
    bool no_source;      /* leave out lines of source files; otherwise: */
    int64_t source_user; /* who has named the source files: they are read with that user's rights */
    bool full;           /* show command lines, process numbers and whole paths */
    bool raw_sites;      /* as in struct view_query */
    const char *filter;  /* as in struct view_query, or NULL */
    uint64_t nodes_max;  /* the most calls that the flame graph shows apart; 0: all */
    const char *sysroot; /* folder below which source files are looked for first, or NULL */
    const char *notes;   /* what the reader should know, one sentence a line, or NULL */
    enum view_sort
        sort; /* the figure that is shown first, unless format_input.value is VALUE_PEAK or VALUE_TOTAL */
    const struct page_comparison *comparison; /* of two recordings (page_diff.h); NULL: the page shows one */
};
#define PAGE_NODES 100000 /* the default of nodes_max */

struct format_input {
    const struct model *model;
    struct resolver *resolver;
    enum value_kind value;
    uint64_t threshold;              /* bytes; traces leave out call paths that hold less */
    const struct format_input *next; /* for FORMAT_TRACE: the next recording, or NULL */
    const struct page_options *page; /* for html; NULL: the defaults, without lines of source files */
    bool full; /* tell command lines, which may hold passwords; html: see page_options.full */
};

enum format_kind {
    FORMAT_TEXT,
    FORMAT_BULKY, /* text that programs read: written to a terminal only if asked for */
    FORMAT_TRACE, /* as FORMAT_BULKY; holds several recordings side by side, where other formats add them up */
    FORMAT_BINARY /* never to a terminal */
};

struct format {
    const char *name;
    const char *extension; /* without a dot: "pb.gz" */
    const char *summary;   /* one line for a list of formats */
    int (*write)(const struct format_input *input, FILE *out, struct problem *problem);
    enum format_kind kind;
};

/* All formats, in the order in which to list them. */
const struct format *format_list(size_t *ret_count);
/* The format of that name, or NULL. */
const struct format *format_find(const char *name);

/* Writes the output and flushes it. Fails also if the disk is full. */
int format_write(
    const struct format *format, const struct format_input *input, FILE *out, struct problem *problem);

/* The names of the values on the command line, in the order of enum value_kind; ends with NULL. */
extern const char *const format_value_names[];
/* The value itself. */
double format_value_of(const struct figures *figures, enum value_kind value);

#endif
