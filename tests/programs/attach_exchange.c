/* 8 threads that pass their blocks on: what one has allocated, another frees or reallocates, at full speed
 * and without phases. At the end nothing is live. */
#include "ledger.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define THREADS 8
#define ROUNDS  4000
#define SHELVES 64

LEDGER_SITE(by_malloc)
LEDGER_SITE(by_calloc)
LEDGER_SITE(by_realloc)
LEDGER_SITE(by_memalign)

struct block {
    struct ledger_site *site;
    size_t size;
};

/* Blocks on their way from one thread to another. */
static struct block *shelves[SHELVES];

static struct block *filled(struct block *block, struct ledger_site *site, size_t size) {
    REQUIRE(block);
    ledger_allocated(site, size);
    *block = (struct block){site, size};
    return block;
}

static struct block *make(unsigned kind, size_t size) {
    void *block = NULL;
    if (kind == 0) {
        block = malloc(size); /* @site by_malloc */
        return filled(block, &by_malloc, size);
    }
    if (kind == 1) {
        block = calloc(1, size); /* @site by_calloc */
        return filled(block, &by_calloc, size);
    }
    REQUIRE(posix_memalign(&block, 64, size) == 0); /* @site by_memalign */
    return filled(block, &by_memalign, size);
}

static struct block *resize(struct block *old, size_t size) {
    struct block before = *old;
    struct block *block = realloc(old, size); /* @site by_realloc */
    ledger_freed(before.site, before.size);
    return filled(block, &by_realloc, size);
}

static void drop(struct block *block) {
    if (!block) return;
    ledger_freed(block->site, block->size);
    free(block);
}

static void *work(void *argument) {
    uint64_t random = 88172645463325252u + (uint64_t)(long)argument * 977;
    for (int i = 0; i < ROUNDS; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        struct block *block = make(random % 3, sizeof *block + (random >> 8) % 600);
        if (random % 5 == 0) block = resize(block, sizeof *block + (random >> 20) % 3000);
        drop(__atomic_exchange_n(&shelves[(random >> 40) % SHELVES], block, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) REQUIRE(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < SHELVES; i++) drop(shelves[i]);
    ledger_print();
    return 0;
}
