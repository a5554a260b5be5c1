#include "symbol/parallel_lookup.h"

#include "base/memory.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define WORKERS_MAX 16
#define WORTH_IT    2000 /* addresses for each worker: to start one costs as much as looking up some hundred */
#define BLOCK       64   /* addresses taken at a time */

/* Look-ups with the indices [next, end), which are done from the first to the last. */
struct range {
    size_t next, end;
};

/* What all workers share. */
struct work {
    struct lookup *lookups;
    pthread_mutex_t lock;             /* protects the ranges and `found` */
    struct range ranges[WORKERS_MAX]; /* for each worker what it has still to do */
    size_t size;                      /* the number of workers */
    size_t found;                     /* look-ups done by all workers */
};

struct worker {
    struct work *work;
    struct symbol_file *file;
    size_t number;
    pthread_t thread;
    bool started;
    lookup_progress progress; /* set for the first worker only, which runs in the caller's thread */
    void *context;
};

/* Gives a worker that has finished its range the second half of the longest range that another worker has left. */
static void take_over(struct work *work, size_t number) {
    struct range *longest = &work->ranges[0];
    for (size_t i = 1; i < work->size; i++)
        if (work->ranges[i].end - work->ranges[i].next > longest->end - longest->next)
            longest = &work->ranges[i];
    size_t left = longest->end - longest->next;
    if (left < 2 * BLOCK) return;
    work->ranges[number] = (struct range){longest->end - left / 2, longest->end};
    longest->end -= left / 2;
}

/* Takes the next block of a worker's range for it. If the range is finished, the worker first takes over a part of
 * another's. An empty block means that nothing is left that is worth taking. */
static struct range next_block(struct work *work, size_t number, size_t found) {
    pthread_mutex_lock(&work->lock);
    work->found += found;
    struct range *own = &work->ranges[number];
    if (own->next == own->end) take_over(work, number);
    struct range block = {own->next, own->end - own->next > BLOCK ? own->next + BLOCK : own->end};
    own->next = block.end;
    pthread_mutex_unlock(&work->lock);
    return block;
}

static size_t found_by_now(struct work *work) {
    pthread_mutex_lock(&work->lock);
    size_t found = work->found;
    pthread_mutex_unlock(&work->lock);
    return found;
}

static void find_block(struct symbol_file *file, struct lookup *lookups, struct range block) {
    for (size_t i = block.next; i < block.end; i++)
        lookups[i].frames = symbol_file_find(file, lookups[i].address, &lookups[i].count);
}

static void *run_worker(void *argument) {
    struct worker *worker = argument;
    struct work *work = worker->work;
    symbol_file_read_second(worker->file);
    struct range block = {0};
    while (block = next_block(work, worker->number, block.end - block.next), block.next < block.end) {
        find_block(worker->file, work->lookups, block);
        if (worker->progress) worker->progress(worker->context, found_by_now(work));
    }
    return NULL;
}

static void find_alone(
    struct symbol_file *file, struct lookup *lookups, size_t count, lookup_progress progress, void *context) {
    for (size_t at = 0; at < count; at += BLOCK) {
        struct range block = {at, count - at > BLOCK ? at + BLOCK : count};
        find_block(file, lookups, block);
        if (progress) progress(context, block.end);
    }
}

static size_t workers_for(size_t count) {
    cpu_set_t processors;
    size_t workers =
        sched_getaffinity(0, sizeof processors, &processors) == 0 ? (size_t)CPU_COUNT(&processors) : 1;
    if (workers > WORKERS_MAX) workers = WORKERS_MAX;
    return workers < count / WORTH_IT ? workers : count / WORTH_IT;
}

/* Opens a second reader of the file for each worker. If that gives fewer than two workers, there are none. */
static void make_workers(
    struct work *work, struct worker *workers, struct symbol_file *file, struct result_pool_list *pools) {
    for (size_t i = 0; i < work->size; i++) {
        struct symbol_file *second = symbol_file_open_second(file, result_pool_list_add(pools));
        if (!second) work->size = i;
        workers[i] = (struct worker){.work = work, .file = second, .number = i};
    }
    if (work->size >= 2) return;
    symbol_file_close(workers[0].file);
    work->size = 0;
}

void parallel_lookup(struct symbol_file *file, struct lookup *lookups, size_t count,
    struct result_pool_list *pools, lookup_progress progress, void *context) {
    struct work work = {.lookups = lookups, .lock = PTHREAD_MUTEX_INITIALIZER, .size = workers_for(count)};
    struct worker workers[WORKERS_MAX] = {0};
    if (work.size > 1) make_workers(&work, workers, file, pools);
    if (work.size < 2) {
        find_alone(file, lookups, count, progress, context);
        return;
    }
    for (size_t i = 0; i < work.size; i++)
        work.ranges[i] = (struct range){count * i / work.size, count * (i + 1) / work.size};
    for (size_t i = 1; i < work.size; i++)
        workers[i].started = pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]) == 0;
    workers[0].progress = progress;
    workers[0].context = context;
    run_worker(&workers[0]);
    for (size_t i = 1; i < work.size; i++)
        if (workers[i].started) pthread_join(workers[i].thread, NULL);
    /* A worker whose thread could not be started leaves the part of its range that was too small to be given
     * away. */
    for (size_t i = 0; i < work.size; i++) find_block(workers[0].file, lookups, work.ranges[i]);
    for (size_t i = 0; i < work.size; i++) symbol_file_close(workers[i].file);
    pthread_mutex_destroy(&work.lock);
}
