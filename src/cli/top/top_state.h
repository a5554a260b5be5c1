/* What `malloscope top` shows, and what the keys have changed, without any terminal.
 *
 *     readings ──► processes[]                   one level of live bytes for each reading
 *         └──────► sites[] ──► cells[]           what one process has at the site: now, lately, at the baseline
 *                     │
 *                     ▼
 *     keys ────► sort, filter, ... ──► rows[]    the sites that are shown, in order (made by top_arrange)
 */
#ifndef MALLOSCOPE_CLI_TOP_TOP_STATE_H
#define MALLOSCOPE_CLI_TOP_TOP_STATE_H

#include "cli/words/site_text.h"
#include "cli/words/stack_text.h"
#include "view/view.h"

#define TOP_WINDOW 5   /* growth is measured over this many readings */
#define TOP_LEVELS 512 /* readings whose levels are kept, for the sparkline */

enum top_sort { TOP_LIVE, TOP_GROWTH, TOP_TOTAL, TOP_TEMPORARY, TOP_OLDEST, TOP_SORTS };

struct top_amounts {
    double live, total, allocations, temporary;
};

/* What one process has at a site. */
struct top_cell {
    uint32_t process;
    struct top_amounts now, base; /* base: at the baseline, 0 if there is none */
    struct estimate live;
    double history[TOP_WINDOW + 1];  /* live bytes at reading n, in element n % (TOP_WINDOW + 1) */
    double age;                      /* of the oldest live block, in seconds; < 0 = nothing is live */
    const struct model_stack *stack; /* with most live bytes; valid until the next reading; or NULL */
};

struct top_site {
    char *function, *file, *module, *heap, *type; /* NULL = not known */
    int line;
    struct top_cell *cells;
    size_t cell_count;
    bool matches; /* the site is shown under the current filter */
    bool expanded;
    struct frame_text *stack; /* the frames shown below an expanded site */
    size_t stack_count;
};

struct top_process {
    uint32_t number; /* from 1 on; unlike a pid, never used twice */
    int pid, parent;
    char *name; /* of the program; clean (text_clean) */
    bool running;
    bool is_incomplete; /* allocations were lost (notes_incomplete) */
    bool levels_only;   /* only the size of the memory is recorded, no allocations */
    double duration;
    struct top_amounts now, base;
    struct estimate live, peak;
    size_t first_reading;
    double levels[TOP_LEVELS]; /* live bytes at reading n, in element n % TOP_LEVELS */
    size_t depth;              /* in the tree of processes: 0 = its parent is not shown */
};

/* A row of the table: a site, with the sum over the processes that count. */
struct top_row {
    struct top_site *site;
    struct top_amounts amounts; /* since the baseline, if there is one */
    struct estimate live;
    double growth; /* live bytes per second */
    double age;
};

struct top_state {
    struct top_process **processes; /* parents before children */
    size_t process_count;
    uint32_t last_number;
    struct top_site **sites;
    size_t site_count, site_capacity;
    void *index; /* hash table of the sites */

    size_t reading;           /* number of the last reading, from 1 on */
    double times[TOP_LEVELS]; /* of the readings, by number as `levels` */
    double interval;          /* seconds between readings */

    enum top_sort sort;
    uint32_t shown; /* number of the process that is shown alone; 0 = all are */
    bool frozen, helps;
    double base_time; /* when the baseline was set; < 0 = there is none */
    char *filter;     /* regular expression, or NULL */
    bool editing;     /* the filter is being typed */
    char typed[128];
    char *note;        /* shown above the foot, or NULL */
    double note_until; /* until then, readings do not replace the note */

    struct top_row *rows;
    size_t row_count;
    const struct top_site *cursor; /* the site that the cursor is on; NULL = that of the first row */
    size_t cursor_offset;          /* 0 = on the row of the site; n = on the n-th line of its stack */
    size_t first_line;             /* number of the line that is at the top of the table */
    size_t page;                   /* lines of the table that are shown */
};

void top_start(struct top_state *state);
void top_free(struct top_state *state);

/* A reading is top_begin_reading, then top_set_process and top_set_site for each process that was read, then
 * top_arrange. */
void top_begin_reading(struct top_state *state, double time);
struct top_process *top_add_process(struct top_state *state, int pid, int parent, const char *name);
struct top_process *top_find_process(const struct top_state *state, uint32_t number);
void top_set_process(struct top_state *state, struct top_process *process, const struct model *model);
struct top_site *top_set_site(
    struct top_state *state, const struct top_process *process, const struct view_row *row);
/* The site of the row. It is added if it is new. */
struct top_site *top_find_site(struct top_state *state, const struct view_row *row);
void top_remove_process(struct top_state *state, uint32_t number);

/* Makes `rows`, and orders the processes. */
void top_arrange(struct top_state *state);

/* Whether the figures of the process are in the totals and rows. If one process is shown alone, only that one counts.
 * Otherwise all processes that run count; if none runs, all count. */
bool top_counts(const struct top_state *state, const struct top_process *process);
double top_growth_of_process(const struct top_state *state, const struct top_process *process);
/* Live bytes of the processes that count, at the given reading. */
double top_level(const struct top_state *state, size_t reading);
/* The earliest reading for which levels of a process that counts are kept. */
size_t top_first_level(const struct top_state *state);

/* How many lines the table has, with the expanded stacks, and on which of them the cursor is. */
size_t top_line_count(const struct top_state *state);
size_t top_cursor_line(const struct top_state *state);

/* Sets the note. With `stays` > 0 it replaces any other and stays for that many seconds: an answer to something
 * that the user did. With `stays` 0 it is about the state of things: it does not replace a note that still has to
 * stay, and the next reading may replace it. NULL: no note. */
void top_set_note(struct top_state *state, const char *text, double now, double stays);
/* Hands the frames over to the site. */
void top_set_stack(struct top_site *site, struct frame_text *frames, size_t count);
/* Removes the pointers to stacks of a model that is about to be freed. */
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

/* What the caller has to do after a key, because it takes the recordings: nothing, quit, apply the filter
 * (top_reader_filter), or find the stacks of expanded sites (top_reader_expand). */
enum top_action { TOP_DONE, TOP_QUIT, TOP_FILTERED, TOP_EXPANDED };

/* `key` is a byte that was typed, or an enum top_key. */
enum top_action top_press(struct top_state *state, int key);

#endif
