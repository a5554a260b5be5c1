/* The processes of this machine, and which of them write recordings: looked at again and again, cheaply.
 *
 * To learn what a process has mapped costs far more than to see that it is there. So a process is asked when
 * it is new, and then after 1, 2, 4, ... seconds: it may have become another program meanwhile. */
#ifndef MALLOSCOPE_MODEL_RUNNING_PROCESSES_H
#define MALLOSCOPE_MODEL_RUNNING_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct running_process {
    int pid, parent;
    uint64_t start_time; /* tells it apart from a later one with its number */
    char *recording;     /* path of the one it has mapped, or NULL */
    double next_look, wait;
    bool is_there;
};

/* Starts zeroed. */
struct running_processes {
    struct running_process *list; /* by pid */
    size_t count, capacity;
};

/* `now`: seconds of a clock that does not jump. */
void running_processes_update(struct running_processes *running, double now);
void running_processes_free(struct running_processes *running);

/* The process, or NULL. Good until the next update. */
struct running_process *running_processes_find(const struct running_processes *running, int pid);

/* Whether `pid` is `ancestor` or was started by it, by way of processes that are still there. */
bool running_processes_descends(const struct running_processes *running, int pid, int ancestor);

/* Asks the process again at the next update. */
void running_processes_look_again(struct running_processes *running, int pid);

#endif
