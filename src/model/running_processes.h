/* The processes of this machine, and which of them write recordings: a list that is brought up to date again and
 * again.
 *
 * Reading what a process has mapped costs far more than seeing that it exists. So the mappings are read when the
 * process is new, and then after 1, 2, 4, … seconds, up to 16: it may have become another program meanwhile (exec). */
#ifndef MALLOSCOPE_MODEL_RUNNING_PROCESSES_H
#define MALLOSCOPE_MODEL_RUNNING_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct running_process {
    int pid, parent;
    uint64_t start_time; /* tells the process apart from a later one with the same number */
    char *recording;     /* path of the recording that it has mapped, or NULL */
    double next_look;    /* when its mappings are to be read again */
    double wait;         /* seconds from that reading to the one after it */
    bool is_there;       /* it was met in the current update */
};

/* The only child of a process; 0 if it has none, or several. */
int running_processes_only_child(int parent);

/* A zeroed struct is an empty list. */
struct running_processes {
    struct running_process *list; /* sorted by pid */
    size_t count, capacity;
};

/* `now`: seconds of a clock that does not jump. */
void running_processes_update(struct running_processes *running, double now);
void running_processes_free(struct running_processes *running);

/* The process, or NULL. The pointer is valid until the next update. */
struct running_process *running_processes_find(const struct running_processes *running, int pid);

/* Whether `pid` is `ancestor`, or a descendant of it whose parents in between are all still running. */
bool running_processes_descends(const struct running_processes *running, int pid, int ancestor);

/* Has the next update read the mappings of the process again. */
void running_processes_look_again(struct running_processes *running, int pid);

#endif
