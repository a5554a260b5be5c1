/* The HTML page, as `flame`, `report --html` and `diff --html` write it. */
#ifndef MALLOSCOPE_CLI_OUTPUT_PAGE_H
#define MALLOSCOPE_CLI_OUTPUT_PAGE_H

#include "cli/input/load.h"
#include "cli/output/output_file.h"

struct page_output {
    struct page_options options;
    struct output_options output;
    bool with_source; /* lines of source files also where another user's recording names them */
};

/* The options that every command has which can write a page. */
#define PAGE_RULES(page)                                                                                     \
    {0, "no-source", OPTION_ON, &(page).options.no_source, NULL,                                             \
        .help = "leave out the lines of source files that are here"},                                        \
        {0, "source", OPTION_ON, &(page).with_source, NULL,                                                  \
            .help = "show them also if another user's program was recorded:\nthose that this user may "      \
                    "read"},                                                                                 \
        {0, "full", OPTION_ON, &(page).options.full, NULL,                                                   \
            .help = "tell the command line, process and whole paths, which\nare left out of a page that "    \
                    "may be passed on"},                                                                     \
    {                                                                                                        \
        0, "nodes", OPTION_COUNT, &(page).options.nodes_max, "N",                                            \
            .help = "tell N calls apart in the flame graph and merge those\n"                                \
                    "that hold least (default 100000; 0 = all)"                                              \
    }

/* The notes that a report would print, one a line. The caller frees the text. */
char *page_notes(const struct loaded *loaded);

/* Decides whose source files the page may show. `fresh` is the other recording of a comparison, or NULL. Source files
 * that another user's program names are left out unless `with_source`: they may be links to what that user may not
 * read, and the page may be passed on. Says so. */
void page_choose_sources(struct page_options *options, bool with_source, bool quiet,
    const struct model *model, const struct model *fresh);

/* Writes the page of a recording. Prints what goes wrong. Returns 0 or the exit code. */
int page_write(const struct loaded *loaded, struct page_output *page, char **sources, size_t source_count);
/* Writes the page of a comparison: `page->options.comparison` must be one of `base` and `fresh`. */
int page_write_comparison(const struct loaded *base, const struct loaded *fresh, struct page_output *page);

#endif
