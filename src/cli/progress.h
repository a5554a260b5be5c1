/* A bar on stderr for work that takes more than half a second, if a person is there to see it. */
#ifndef MALLOSCOPE_CLI_PROGRESS_H
#define MALLOSCOPE_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct progress {
    const char *title;
    bool wanted, shown;
    double start, last;
};

void progress_start(struct progress *progress, const char *title);
/* Has the shape of symbol_progress; `context` is the struct progress. */
void progress_step(void *context, size_t done, size_t all);
void progress_end(struct progress *progress);

#endif
