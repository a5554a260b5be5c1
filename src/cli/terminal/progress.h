/* A line on stderr about work that takes more than half a second, if a person is there to see it.
 *
 *     struct progress progress;
 *     progress_start(&progress, "reading symbols");
 *     ... work that prints nothing ...
 *     progress_end(&progress);
 *
 * A thread of its own draws the line, so the work need not report anything. Work that knows how far it is may call
 * progress_step; the line then shows a percentage. Nothing is drawn unless stderr is a terminal whose lines can be
 * erased, and the line is erased at the end. The half second counts from the first progress_start of the command. */
#ifndef MALLOSCOPE_CLI_TERMINAL_PROGRESS_H
#define MALLOSCOPE_CLI_TERMINAL_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define PROGRESS_GROUPING "grouping stacks"

struct progress {
    const char *title;
    bool wanted; /* the drawing thread runs */
    pthread_t drawer;
    pthread_mutex_t lock;   /* guards `ended` and `shown` */
    pthread_cond_t changed; /* `ended` was set */
    bool ended, shown;
    atomic_size_t done, all; /* all = 0: it is not known how far the work is */
};

void progress_start(struct progress *progress, const char *title);
/* Can be passed as a symbol_progress; `context` is the struct progress. */
void progress_step(void *context, size_t done, size_t all);
void progress_end(struct progress *progress);

#endif
