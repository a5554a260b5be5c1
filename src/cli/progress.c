#include "cli/progress.h"
#include "cli/terminal.h"

#include <string.h>
#include <time.h>

#define PATIENCE 0.5 /* seconds before anything is shown */
#define PAUSE    0.1 /* seconds between two drawings */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void progress_start(struct progress *progress, const char *title) {
    *progress = (struct progress){.title = title, .wanted = terminal_of(stderr).is_terminal, .start = now()};
}

void progress_step(void *context, size_t done, size_t all) {
    struct progress *progress = context;
    if (!progress->wanted || all == 0) return;
    double time = now();
    if (time - progress->start < PATIENCE || time - progress->last < PAUSE) return;
    progress->last = time;
    size_t width = terminal_of(stderr).width;
    size_t room = width > strlen(progress->title) + 12 ? width - strlen(progress->title) - 12 : 0;
    if (room > 40) room = 40;
    double share = done < all ? (double)done / (double)all : 1;
    char bar[41] = "";
    size_t filled = (size_t)(share * (double)room);
    memset(bar, '#', filled);
    memset(bar + filled, '.', room - filled);
    bar[room] = 0;
    fprintf(stderr, "\r%s [%s] %3.0f %%", progress->title, bar, 100 * share);
    fflush(stderr);
    progress->shown = true;
}

void progress_end(struct progress *progress) {
    if (!progress->shown) return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
}
