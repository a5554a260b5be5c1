/* Formats: a model and its symbols, written for other people's tools. One file a format, one list of them
 * here.
 *
 *     name        file        for
 *     pprof       pprof.c     pprof and everything that reads profile.proto
 *     heap        heap_text.c google-pprof and pprof; values as they are
 *     heap_v2     heap_text.c the same readers; they rescale, so the values are scaled down first
 *     speedscope  speedscope.c
 *     chrome      chrome.c    the trace viewer of Chrome; holds several recordings of a program, as moments
 *     chrome-v1   chrome.c    the same viewer, and older ones
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

/* Which figure is wanted where a format holds one, or begins with one. */
enum value_kind {
    VALUE_LIVE,    /* live bytes */
    VALUE_PEAK,    /* bytes live when the whole heap was largest; formats with live columns put these there */
    VALUE_TOTAL,   /* bytes ever allocated */
    VALUE_OBJECTS, /* live objects */
};

/* What the page shows. */
struct page_options {
    bool no_source;      /* leave out lines of source files */
    bool full;           /* tell command lines, process numbers and whole paths */
    bool raw_sites;      /* as in struct view_query */
    const char *filter;  /* as in struct view_query, or NULL */
    uint64_t nodes_max;  /* calls that the flame graph tells apart, 0 = all */
    const char *sysroot; /* where source files are looked for first, or NULL */
    const char *notes;   /* what to be careful about, one sentence a line, or NULL */
    enum view_sort sort; /* what it begins with, unless format_input.value says more than VALUE_LIVE */
    const struct page_comparison *comparison; /* format/page_diff.h, or NULL: it shows one recording */
};
#define PAGE_NODES 100000 /* the default of nodes_max */

struct format_input {
    const struct model *model;
    struct resolver *resolver;
    enum value_kind value;
    uint64_t threshold; /* bytes: formats that leave out the long tail leave out what is smaller */
    const struct format_input *next; /* of a FORMAT_TRACE: the next recording, or NULL */
    const struct page_options *page; /* html alone; NULL: the defaults */
};

enum format_kind {
    FORMAT_TEXT,
    FORMAT_BULKY, /* text, but for programs: to a terminal only if asked for */
    FORMAT_TRACE, /* as before, and holds recordings side by side; other formats have them added up */
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
/* NULL if there is none of that name. */
const struct format *format_find(const char *name);

/* Writes and flushes; a full disk is a problem as well. */
int format_write(
    const struct format *format, const struct format_input *input, FILE *out, struct problem *problem);

/* What people call them, in the order of enum value_kind; ends with NULL. */
extern const char *const format_value_names[];
double format_value_of(const struct figures *figures, enum value_kind value);

#endif
