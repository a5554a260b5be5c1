/* A line on stderr about work that takes more than half a second, if a person is there to see it.
 *
 *     struct progress progress;
 *     progress_start(&progress, "reading symbols");
 *     ... work that prints nothing ...
 *     progress_end(&progress);
 *
 * A thread of its own draws the line, so that the work need not report to anybody; where it can say how far
 * it is, with progress_step, the line is a bar. Nothing is drawn unless stderr is a terminal whose lines can
 * be erased again, and nothing is left of it at the end. The half second counts from the first of several
 * works. */
#ifndef MALLOSCOPE_CLI_TERMINAL_PROGRESS_H
#define MALLOSCOPE_CLI_TERMINAL_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define PROGRESS_GROUPING "grouping stacks"

struct progress {
    const char *title;
    bool wanted;
    pthread_t drawer;
    pthread_mutex_t lock; /* of `ended` and `shown` */
    pthread_cond_t changed;
    bool ended, shown;
    atomic_size_t done, all; /* all = 0: not known */
};

void progress_start(struct progress *progress, const char *title);
/* Has the shape of symbol_progress; `context` is the struct progress. */
void progress_step(void *context, size_t done, size_t all);
void progress_end(struct progress *progress);

#endif
