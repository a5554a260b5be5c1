#include "attach/bpf/probe_links.h"

#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_MOST 16

/* ---- closing ---- */

static void close_link(const struct probe_link *link) {
    if (link->fd >= 0) close(link->fd);
    if (link->link) bpf_link__destroy(link->link);
}

/* The links of one group. Each thread takes the next one that no other thread has taken. */
struct work {
    const struct probe_link *links;
    size_t count;
    _Atomic size_t next;
};

static void *close_some(void *context) {
    struct work *work = context;
    for (size_t i; (i = atomic_fetch_add(&work->next, 1)) < work->count;) close_link(&work->links[i]);
    return NULL;
}

static void close_group(const struct probe_link *links, size_t count) {
    struct work work = {.links = links, .count = count};
    pthread_t threads[THREADS_MOST];
    size_t started = 0;
    while (started < THREADS_MOST && started + 1 < count &&
           pthread_create(&threads[started], NULL, close_some, &work) == 0)
        started++;
    close_some(&work);
    for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

void probe_links_close(struct probe_links *list) {
    for (size_t i = 0, end; i < list->count; i = end) {
        for (end = i; end < list->count && list->links[end].group == list->links[i].group;) end++;
        close_group(&list->links[i], end - i);
    }
    free(list->links);
    *list = (struct probe_links){0};
}

/* ---- in the background ---- */

static void *close_list(void *context) {
    struct probe_links *list = context;
    probe_links_close(list);
    free(list);
    return NULL;
}

static void forget_finished(struct probe_links_closer *closer) {
    size_t kept = 0;
    for (size_t i = 0; i < closer->count; i++)
        if (pthread_tryjoin_np(closer->threads[i], NULL) != 0) closer->threads[kept++] = closer->threads[i];
    closer->count = kept;
}

void probe_links_close_later(struct probe_links_closer *closer, struct probe_links list) {
    struct probe_links *own = memory_copy(&list, sizeof list);
    forget_finished(closer);
    closer->threads = memory_reallocate(closer->threads, (closer->count + 1) * sizeof *closer->threads);
    if (pthread_create(&closer->threads[closer->count], NULL, close_list, own) == 0)
        closer->count++;
    else
        close_list(own);
}

void probe_links_wait(struct probe_links_closer *closer) {
    for (size_t i = 0; i < closer->count; i++) pthread_join(closer->threads[i], NULL);
    free(closer->threads);
    *closer = (struct probe_links_closer){0};
}
