/* Reads the recordings that `top` shows, again and again, and finds the recordings of processes that are started. */
#ifndef MALLOSCOPE_CLI_TOP_TOP_READER_H
#define MALLOSCOPE_CLI_TOP_TOP_READER_H

#include "cli/input/load.h"
#include "cli/top/top_state.h"
#include "model/running_processes.h"

#include <sys/stat.h>

/* A recording that is shown. */
struct top_watch {
    char *path;
    dev_t device;
    ino_t inode;
    uint32_t process;    /* number of its process in the state; 0 = not read yet */
    int pid;             /* of the process; 0 = the process was never seen running */
    uint64_t start_time; /* of that process, to tell it from a later one of the same pid */
    bool is_named;       /* by the user: it stays on the screen after its process has ended */
    double ended;        /* when the process ended; < 0 = it runs, as far as is known */
    struct loaded loaded;
};

struct top_reader {
    struct top_state *state;
    char **targets; /* what the user named; none = all recordings that are being written */
    size_t target_count;
    struct load_options options;
    symbol_progress progress; /* called during symbolization, which may take long */
    void *context;

    double names_cost; /* seconds of processor time that symbolization has taken so far */
    struct running_processes running;
    struct top_watch *watches;
    size_t watch_count;
};

/* Finds the recordings to watch: what the user named, and the recordings of descendants. Only the first call fails,
 * if something that the user named cannot be found or opened. */
int top_reader_find(struct top_reader *reader, double now, struct problem *problem);

/* Fails if something that the user named cannot be read. */
int top_reader_check(const struct top_reader *reader, struct problem *problem);

/* Reads the recordings of all processes that run into the state. */
void top_reader_read(struct top_reader *reader, double now);

/* Marks the sites that match the state's filter. A filter that is no regular expression is removed, with a note. */
void top_reader_filter(struct top_reader *reader, double now);

/* Puts the stacks into the sites that are expanded. */
void top_reader_expand(struct top_reader *reader);

void top_reader_free(struct top_reader *reader);

#endif
