/* What `malloscope top` knows and what the keys have made of it, without any terminal.
 *
 *     readings ──► processes[]                  one level of live bytes per reading
 *              └─► sites[] ──► cells[]          what one process has at the site, now, lately and at the
 * baseline keys ──────► sort, filter, cursor, ... └──► rows[]               the sites to be shown, in order:
 * derived, see top_arrange
 */
#ifndef MALLOSCOPE_CLI_TOP_TOP_STATE_H
#define MALLOSCOPE_CLI_TOP_TOP_STATE_H

#include "cli/words/site_text.h"
#include "cli/words/stack_text.h"
#include "view/view.h"

#define TOP_WINDOW 5   /* growth is measured from so many readings ago */
#define TOP_LEVELS 512 /* readings that are kept for the sparkline */

enum top_sort { TOP_LIVE, TOP_GROWTH, TOP_TOTAL, TOP_TEMPORARY, TOP_OLDEST, TOP_SORTS };

struct top_amounts {
    double live, total, allocations, temporary;
};

/* What one process has at a site. */
struct top_cell {
    uint32_t process;
    struct top_amounts now, base;
    struct estimate live;
    double history[TOP_WINDOW + 1];  /* live bytes, by the number of the reading */
    double age;                      /* seconds, of the oldest that is live; < 0 = nothing is */
    const struct model_stack *stack; /* the one with most live bytes; good until the process is read again */
};

struct top_site {
    char *function, *file, *module, *heap, *type; /* NULL = not known */
    int line;
    struct top_cell *cells;
    size_t cell_count;
    bool matches; /* the filter */
    bool expanded;
    struct frame_text *stack; /* if it is expanded */
    size_t stack_count;
};

struct top_process {
    uint32_t number; /* never used again, from 1 on */
    int pid, parent;
    char *name; /* clean */
    bool running;
    bool is_incomplete; /* allocations were lost that should have been recorded */
    bool levels_only;   /* nothing is known of single blocks */
    double duration;
    struct top_amounts now, base;
    struct estimate live;
    double peak;
    size_t first_reading;
    double levels[TOP_LEVELS]; /* live bytes, by the number of the reading */
    size_t depth;              /* in the tree of those that are shown */
};

/* A line of the table. */
struct top_row {
    struct top_site *site;
    struct top_amounts amounts; /* since the baseline, if there is one */
    struct estimate live;
    double growth; /* bytes a second */
    double age;
};

struct top_state {
    struct top_process **processes; /* parents before children */
    size_t process_count;
    uint32_t last_number;
    struct top_site **sites;
    size_t site_count, site_capacity;
    void *index; /* of sites by what they are */

    size_t reading; /* number of the last one, from 1 on */
    double times[TOP_LEVELS];
    double interval; /* seconds between readings */

    enum top_sort sort;
    uint32_t shown; /* number of the process, 0 = all */
    bool frozen, helps;
    double base_time; /* of the baseline; < 0 = none */
    char *filter;     /* or NULL */
    bool editing;     /* the filter is being typed */
    char typed[128];
    char *note;        /* for the user, or NULL */
    double note_until; /* it stays till then */

    struct top_row *rows;
    size_t row_count;
    const struct top_site *cursor; /* NULL = the first row, whichever that is */
    size_t cursor_offset;          /* 0 = its row, then the lines of its stack */
    size_t first_line;             /* at the top of the table */
    size_t page;                   /* lines of the table that are shown */
};

void top_start(struct top_state *state);
void top_free(struct top_state *state);

/* A reading: begin, then for each process that was read its figures and sites, then top_arrange. */
void top_begin_reading(struct top_state *state, double time);
struct top_process *top_add_process(struct top_state *state, int pid, int parent, const char *name);
struct top_process *top_find_process(const struct top_state *state, uint32_t number);
void top_set_process(struct top_state *state, struct top_process *process, const struct model *model);
struct top_site *top_set_site(
    struct top_state *state, const struct top_process *process, const struct view_row *row);
/* The site of the row, made if need be. */
struct top_site *top_find_site(struct top_state *state, const struct view_row *row);
void top_remove_process(struct top_state *state, uint32_t number);

/* Which sites are shown and in what order. */
void top_arrange(struct top_state *state);

/* A process counts if it is the one that is shown, or, where all are, if it runs; when none does, all count.
 */
bool top_counts(const struct top_state *state, const struct top_process *process);
double top_growth_of_process(const struct top_state *state, const struct top_process *process);
/* Live bytes of the processes that count, at an earlier reading. */
double top_level(const struct top_state *state, size_t reading);
/* The earliest reading that is kept of any of them. */
size_t top_first_level(const struct top_state *state);

/* Lines of the table, with expanded stacks, and which of them the cursor is on. */
size_t top_line_count(const struct top_state *state);
size_t top_cursor_line(const struct top_state *state);

/* A note about something that the user did `stays` for some seconds, in place of any other; one about how
 * things are (0) goes with the next reading. NULL = nothing is to be said. */
void top_set_note(struct top_state *state, const char *text, double now, double stays);
void top_set_stack(struct top_site *site, struct frame_text *frames, size_t count);
/* Those of a model that is about to be freed. */
void top_forget_stacks(struct top_state *state, const struct model *model);

enum top_key {
    TOP_KEY_ENTER = '\n',
    TOP_KEY_ESCAPE = 27,
    TOP_KEY_BACKSPACE = 127,
    TOP_KEY_UP = 0x1000,
    TOP_KEY_DOWN,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
};

/* What is left to do after a key, by who can read recordings. */
enum top_action { TOP_DONE, TOP_QUIT, TOP_FILTERED, TOP_EXPANDED };

/* `key`: a byte that was typed, or an enum top_key. */
enum top_action top_press(struct top_state *state, int key);

#endif
