/* Reads the recordings that `top` shows, again and again, and finds those of processes that come to them. */
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
    uint32_t process;    /* number in the state; 0 = not read yet */
    int pid;             /* of the running process; 0 = it has never been seen to run */
    uint64_t start_time; /* of that process */
    bool is_named;       /* by the user: it stays when it has ended */
    double ended;        /* when; < 0 = it runs, as far as is known */
    struct loaded loaded;
};

struct top_reader {
    struct top_state *state;
    char **targets; /* what the user named; none = all that run */
    size_t target_count;
    struct load_options options;
    symbol_progress progress; /* while names are read, which may take long */
    void *context;

    double names_cost; /* seconds of processor time that names have taken so far */
    struct running_processes running;
    struct top_watch *watches;
    size_t watch_count;
};

/* Finds what the user named; the first call tells what is wrong with that. */
int top_reader_find(struct top_reader *reader, double now, struct problem *problem);

/* Whether all that the user named can be read. */
int top_reader_check(const struct top_reader *reader, struct problem *problem);

/* Reads all that run into the state. */
void top_reader_read(struct top_reader *reader, double now);

/* Marks the sites that match the state's filter. One that is no regular expression is dropped, with a note.
 */
void top_reader_filter(struct top_reader *reader, double now);

/* Gives the sites that are expanded their stacks. */
void top_reader_expand(struct top_reader *reader);

void top_reader_free(struct top_reader *reader);

#endif
