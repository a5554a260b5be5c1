#include "symbol/parallel_lookup.h"

#include "base/memory.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define HELPERS_MAX 16
#define WORTH_IT    2000 /* addresses for each helper: to begin costs as much as some hundred addresses */
#define BLOCK       64   /* addresses taken at a time */

/* A stretch of the lookups, worked on from its start. */
struct stretch {
    size_t next, end;
};

struct crew {
    struct lookup *lookups;
    pthread_mutex_t lock; /* of the stretches and of `found` */
    struct stretch stretches[HELPERS_MAX];
    size_t size;
    size_t found;
};

struct helper {
    struct crew *crew;
    struct symbol_file *file;
    size_t number;
    pthread_t thread;
    bool started;
    lookup_progress progress; /* called by the first one alone */
    void *context;
};

void result_pool_list_free(struct result_pool_list *pools) {
    for (size_t i = 0; i < pools->count; i++) result_pool_free(pools->list[i]);
    free(pools->list);
    *pools = (struct result_pool_list){0};
}

static struct result_pool *result_pool_list_add(struct result_pool_list *pools) {
    pools->list = memory_reallocate(pools->list, (pools->count + 1) * sizeof *pools->list);
    return pools->list[pools->count++] = result_pool_new();
}

/* The farther half of the longest stretch that is left becomes the helper's own. */
static void take_over(struct crew *crew, size_t number) {
    struct stretch *longest = &crew->stretches[0];
    for (size_t i = 1; i < crew->size; i++)
        if (crew->stretches[i].end - crew->stretches[i].next > longest->end - longest->next)
            longest = &crew->stretches[i];
    size_t left = longest->end - longest->next;
    if (left < 2 * BLOCK) return;
    crew->stretches[number] = (struct stretch){longest->end - left / 2, longest->end};
    longest->end -= left / 2;
}

/* The next block of a helper's stretch, or of another's. Empty if nothing is left that is worth taking. */
static struct stretch next_block(struct crew *crew, size_t number, size_t found) {
    pthread_mutex_lock(&crew->lock);
    crew->found += found;
    struct stretch *own = &crew->stretches[number];
    if (own->next == own->end) take_over(crew, number);
    struct stretch block = {own->next, own->end - own->next > BLOCK ? own->next + BLOCK : own->end};
    own->next = block.end;
    pthread_mutex_unlock(&crew->lock);
    return block;
}

static size_t found_by_now(struct crew *crew) {
    pthread_mutex_lock(&crew->lock);
    size_t found = crew->found;
    pthread_mutex_unlock(&crew->lock);
    return found;
}

static void find_block(struct symbol_file *file, struct lookup *lookups, struct stretch block) {
    for (size_t i = block.next; i < block.end; i++)
        lookups[i].frames = symbol_file_find(file, lookups[i].address, &lookups[i].count);
}

static void *help(void *argument) {
    struct helper *helper = argument;
    struct crew *crew = helper->crew;
    symbol_file_read_second(helper->file);
    struct stretch block = {0};
    while (block = next_block(crew, helper->number, block.end - block.next), block.next < block.end) {
        find_block(helper->file, crew->lookups, block);
        if (helper->progress) helper->progress(helper->context, found_by_now(crew));
    }
    return NULL;
}

static void find_alone(
    struct symbol_file *file, struct lookup *lookups, size_t count, lookup_progress progress, void *context) {
    for (size_t at = 0; at < count; at += BLOCK) {
        struct stretch block = {at, count - at > BLOCK ? at + BLOCK : count};
        find_block(file, lookups, block);
        if (progress) progress(context, block.end);
    }
}

static size_t helpers_for(size_t count) {
    cpu_set_t processors;
    size_t helpers =
        sched_getaffinity(0, sizeof processors, &processors) == 0 ? (size_t)CPU_COUNT(&processors) : 1;
    if (helpers > HELPERS_MAX) helpers = HELPERS_MAX;
    return helpers < count / WORTH_IT ? helpers : count / WORTH_IT;
}

/* As many as make sense and can be had; less than two are none. */
static void make_crew(
    struct crew *crew, struct helper *helpers, struct symbol_file *file, struct result_pool_list *pools) {
    for (size_t i = 0; i < crew->size; i++) {
        struct symbol_file *second = symbol_file_open_second(file, result_pool_list_add(pools));
        if (!second) crew->size = i;
        helpers[i] = (struct helper){.crew = crew, .file = second, .number = i};
    }
    if (crew->size >= 2) return;
    symbol_file_close(helpers[0].file);
    crew->size = 0;
}

void parallel_lookup(struct symbol_file *file, struct lookup *lookups, size_t count,
    struct result_pool_list *pools, lookup_progress progress, void *context) {
    struct crew crew = {.lookups = lookups, .lock = PTHREAD_MUTEX_INITIALIZER, .size = helpers_for(count)};
    struct helper helpers[HELPERS_MAX] = {0};
    if (crew.size > 1) make_crew(&crew, helpers, file, pools);
    if (crew.size < 2) {
        find_alone(file, lookups, count, progress, context);
        return;
    }
    for (size_t i = 0; i < crew.size; i++)
        crew.stretches[i] = (struct stretch){count * i / crew.size, count * (i + 1) / crew.size};
    for (size_t i = 1; i < crew.size; i++)
        helpers[i].started = pthread_create(&helpers[i].thread, NULL, help, &helpers[i]) == 0;
    helpers[0].progress = progress;
    helpers[0].context = context;
    help(&helpers[0]);
    for (size_t i = 1; i < crew.size; i++)
        if (helpers[i].started) pthread_join(helpers[i].thread, NULL);
    /* Of a thread that could not be started the others leave what is too little to be taken over. */
    for (size_t i = 0; i < crew.size; i++) find_block(helpers[0].file, lookups, crew.stretches[i]);
    for (size_t i = 0; i < crew.size; i++) symbol_file_close(helpers[i].file);
    pthread_mutex_destroy(&crew.lock);
}
