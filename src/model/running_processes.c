#include "model/running_processes.h"

#include "base/memory.h"
#include "model/model.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_LONGEST 16 /* seconds between two readings of the mappings of a process */

static int compare_pids(const void *a, const void *b) {
    const struct running_process *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

struct running_process *running_processes_find(const struct running_processes *running, int pid) {
    struct running_process key = {.pid = pid};
    if (!running->count) return NULL;
    return bsearch(&key, running->list, running->count, sizeof key, compare_pids);
}

/* Reads the parent and the start of a process. False: it has ended. The program's name in front of them may hold
 * any characters, so they are looked for behind its last parenthesis. */
static bool read_stat(int proc, const char *name, int *ret_parent, uint64_t *ret_start) {
    char path[32], text[1024];
    snprintf(path, sizeof path, "%.20s/stat", name);
    int descriptor = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return false;
    ssize_t length = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    if (length <= 0) return false;
    text[length] = 0;
    const char *after = strrchr(text, ')');
    return after &&
           sscanf(after,
               ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
               ret_parent, ret_start) == 2;
}

int running_processes_only_child(int parent) {
    int child = 0, count = 0;
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        int of, pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
        uint64_t start;
        if (pid <= 0 || !read_stat(dirfd(folder), entry->d_name, &of, &start) || of != parent) continue;
        child = pid;
        count++;
    }
    if (folder) closedir(folder);
    return count == 1 ? child : 0;
}

static void look(struct running_process *process, double now) {
    free(process->recording);
    process->recording = model_find_recording_held_by(process->pid);
    process->next_look = now + process->wait;
    process->wait = process->wait * 2 < WAIT_LONGEST ? process->wait * 2 : WAIT_LONGEST;
}

/* Marks a process as running, and adds it at the end if it is not among the first `known`, which are sorted. */
static void note(struct running_processes *running, size_t known, int pid, int parent, uint64_t start) {
    struct running_processes sorted = {.list = running->list, .count = known};
    struct running_process *process = running_processes_find(&sorted, pid);
    if (process && process->start_time == start) {
        process->parent = parent;
        process->is_there = true;
        return;
    }
    if (running->count == running->capacity) {
        running->capacity = running->capacity ? 2 * running->capacity : 256;
        running->list = memory_reallocate_array(running->list, running->capacity, sizeof *running->list);
    }
    running->list[running->count++] = (struct running_process){
        .pid = pid, .parent = parent, .start_time = start, .wait = 1, .is_there = true};
}

static void remove_ended(struct running_processes *running) {
    size_t kept = 0;
    for (size_t i = 0; i < running->count; i++) {
        if (running->list[i].is_there)
            running->list[kept++] = running->list[i];
        else
            free(running->list[i].recording);
    }
    running->count = kept;
}

void running_processes_update(struct running_processes *running, double now) {
    DIR *folder = opendir("/proc");
    if (!folder) return; /* recordings can be read without knowing processes */
    size_t known = running->count;
    for (size_t i = 0; i < known; i++) running->list[i].is_there = false;
    for (struct dirent *entry; (entry = readdir(folder));) {
        int parent, pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
        uint64_t start;
        if (pid > 0 && pid != getpid() && read_stat(dirfd(folder), entry->d_name, &parent, &start))
            note(running, known, pid, parent, start);
    }
    closedir(folder);
    remove_ended(running);
    if (running->count) qsort(running->list, running->count, sizeof *running->list, compare_pids);
    for (size_t i = 0; i < running->count; i++)
        if (running->list[i].next_look <= now) look(&running->list[i], now);
}

void running_processes_free(struct running_processes *running) {
    for (size_t i = 0; i < running->count; i++) free(running->list[i].recording);
    free(running->list);
    *running = (struct running_processes){0};
}

bool running_processes_descends(const struct running_processes *running, int pid, int ancestor) {
    const struct running_process *process = running_processes_find(running, pid);
    /* Numbers are used again, so that one reading of /proc may show a circle of parents. */
    for (size_t steps = 0; process && steps <= running->count; steps++) {
        if (process->pid == ancestor) return true;
        process = running_processes_find(running, process->parent);
    }
    return false;
}

void running_processes_look_again(struct running_processes *running, int pid) {
    struct running_process *process = running_processes_find(running, pid);
    if (process)
        *process = (struct running_process){.pid = pid,
            .parent = process->parent,
            .start_time = process->start_time,
            .recording = process->recording,
            .wait = 1,
            .is_there = true};
}
