#include "cli/terminal/progress.h"

#include "base/nanoseconds.h"
#include "cli/terminal/terminal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PATIENCE 0.5 /* seconds before the line is shown */
#define PAUSE    0.1 /* seconds between two drawings */
#define BAR      40  /* columns of the bar, at most */
#define BLOCK    6   /* columns of the block that moves through the bar while the progress is not known */

static double now(void) {
    return 1e-9 * (double)nanoseconds_now(CLOCK_MONOTONIC);
}

/* When the command called this for the first time. */
static double beginning(void) {
    static double began;
    if (began == 0) began = now();
    return began;
}

static void fill(char *bar, size_t room, size_t from, size_t to) {
    memset(bar, '.', room);
    memset(bar + from, '#', to - from);
    bar[room] = '\0';
}

/* The block moves to and fro, and takes two seconds from one end of the bar to the other. */
static void fill_moving(char *bar, size_t room, double seconds) {
    size_t block = room < BLOCK ? room : BLOCK, way = room - block;
    size_t step = way ? (size_t)(seconds * (double)way / 2) % (2 * way) : 0;
    size_t from = step < way ? step : 2 * way - step;
    fill(bar, room, from, from + block);
}

static void draw(struct progress *progress, double seconds) {
    size_t done = atomic_load(&progress->done), all = atomic_load(&progress->all);
    size_t width = terminal_of(stderr).width, other = strlen(progress->title) + strlen(" []  100 %") + 1;
    size_t room = width > other ? width - other : 0;
    char bar[BAR + 1], how_far[32];
    if (room > BAR) room = BAR;
    double share = all ? (done < all ? (double)done / (double)all : 1) : 0;
    if (all) {
        fill(bar, room, 0, (size_t)(share * (double)room));
        snprintf(how_far, sizeof how_far, "%3.0f %%", 100 * share);
    } else {
        fill_moving(bar, room, seconds);
        snprintf(how_far, sizeof how_far, "%3.0f s", seconds);
    }
    char line[256];
    snprintf(line, sizeof line, "%.100s [%s] %s", progress->title, bar, how_far);
    /* One column less than the terminal has: a full line would wrap, and could then not be erased. */
    fprintf(stderr, "\r%.*s", (int)(width > 1 ? width - 1 : 0), line);
    fflush(stderr);
    progress->shown = true;
}

static struct timespec time_of(double seconds) {
    return (struct timespec){(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
}

static void *draw_until_the_end(void *context) {
    struct progress *progress = context;
    double began = beginning(), next = began + PATIENCE;
    pthread_mutex_lock(&progress->lock);
    while (!progress->ended) {
        if (now() >= next) {
            draw(progress, now() - began);
            next = now() + PAUSE;
        }
        struct timespec until = time_of(next);
        pthread_cond_clockwait(&progress->changed, &progress->lock, CLOCK_MONOTONIC, &until);
    }
    pthread_mutex_unlock(&progress->lock);
    return NULL;
}

/* The drawing thread blocks all signals, so that the working thread gets them. */
static bool start_drawer(struct progress *progress) {
    sigset_t all, former;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former);
    bool started = pthread_create(&progress->drawer, NULL, draw_until_the_end, progress) == 0;
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    return started;
}

void progress_start(struct progress *progress, const char *title) {
    *progress = (struct progress){
        .title = title, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    beginning();
    progress->wanted = terminal_of(stderr).can_erase && start_drawer(progress);
}

void progress_step(void *context, size_t done, size_t all) {
    struct progress *progress = context;
    atomic_store(&progress->done, done);
    atomic_store(&progress->all, all);
}

void progress_end(struct progress *progress) {
    if (!progress->wanted) return;
    pthread_mutex_lock(&progress->lock);
    progress->ended = true;
    pthread_cond_signal(&progress->changed);
    pthread_mutex_unlock(&progress->lock);
    pthread_join(progress->drawer, NULL);
    if (progress->shown) fputs("\r\033[K", stderr);
    fflush(stderr);
}
