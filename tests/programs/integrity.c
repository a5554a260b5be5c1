/* integrity THREADS OPERATIONS SEED: fills every block with a pattern, reallocates it up and down, and checks
 * contents, alignment and usable size at every step. Blocks travel between threads. Prints a checksum of what it
 * did, which depends on the arguments alone. WITHOUT_PVALLOC is for allocators that do not have it. */
#include "ledger.h"

#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define SLOTS 256

struct block {
    unsigned char *bytes;
    size_t size;
    unsigned char pattern;
};

struct worker {
    pthread_t thread;
    uint64_t random;
    uint64_t checksum;
    long operations;
};

/* Blocks that one thread allocated and another frees. */
static struct block exchange[64];
static pthread_mutex_t exchange_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Mostly small, at times up to a few MiB. */
static size_t random_size(uint64_t *state) {
    uint64_t kind = next_random(state) % 100;
    if (kind < 70) return next_random(state) % 512;
    if (kind < 90) return next_random(state) % 16384;
    if (kind < 99) return next_random(state) % 200000;
    return next_random(state) % 3000000;
}

static void fill(struct block *block) {
    memset(block->bytes, block->pattern, malloc_usable_size(block->bytes));
}

static void check(const struct block *block, size_t size) {
    REQUIRE(malloc_usable_size(block->bytes) >= block->size);
    for (size_t i = 0; i < size; i++) REQUIRE(block->bytes[i] == block->pattern);
}

static void acquire(struct worker *worker, struct block *block) {
    uint64_t *random = &worker->random;
    size_t size = random_size(random);
    size_t alignment = size < 16 ? 8 : 16; /* the least that any allocator gives */
    void *pointer = NULL;
    switch (next_random(random) % 8) {
    case 0:
        pointer = calloc(size / 8 + 1, 8);
        size = (size / 8 + 1) * 8;
        for (size_t i = 0; i < size; i++) REQUIRE(((unsigned char *)pointer)[i] == 0);
        break;
    case 1:
        alignment = (size_t)16 << next_random(random) % 13;
        REQUIRE(posix_memalign(&pointer, alignment, size) == 0);
        break;
    case 2:
        alignment = (size_t)16 << next_random(random) % 13;
        pointer = aligned_alloc(alignment, size);
        break;
    case 3:
        alignment = 4096;
        size += size == 0; /* for which jemalloc does not align */
#ifdef WITHOUT_PVALLOC
        pointer = valloc(size);
#else
        pointer = next_random(random) % 2 ? valloc(size) : pvalloc(size);
#endif
        break;
    case 4:
        pointer = realloc(NULL, size);
        break;
    case 5:
        pointer = reallocarray(NULL, size / 4 + 1, 4);
        break;
    default:
        pointer = malloc(size);
        break;
    }
    REQUIRE(pointer && (uintptr_t)pointer % alignment == 0);
    block->bytes = pointer;
    block->size = size;
    block->pattern = (unsigned char)next_random(random);
    fill(block);
    worker->checksum = worker->checksum * 31 + size;
}

static void resize(struct worker *worker, struct block *block) {
    size_t size = random_size(&worker->random) + 1;
    if (next_random(&worker->random) % 2)
        size = block->size / 2 + 1 + next_random(&worker->random) % (block->size + 1);
    unsigned char *pointer =
        next_random(&worker->random) % 4 ? realloc(block->bytes, size) : reallocarray(block->bytes, size, 1);
    REQUIRE(pointer && (uintptr_t)pointer % (size < 16 ? 8 : 16) == 0);
    size_t common = size < block->size ? size : block->size;
    block->bytes = pointer;
    block->size = size;
    check(block, common);
    fill(block);
    worker->checksum = worker->checksum * 31 + size;
}

static void release(struct block *block) {
    check(block, block->size);
    free(block->bytes);
    block->bytes = NULL;
}

/* Puts the block into the exchange, and frees the one that another thread has left there. */
static void pass_on(struct worker *worker, struct block *block) {
    struct block *place = &exchange[next_random(&worker->random) % 64];
    pthread_mutex_lock(&exchange_lock);
    struct block old = *place;
    *place = *block;
    pthread_mutex_unlock(&exchange_lock);
    block->bytes = NULL;
    if (old.bytes) release(&old);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    struct block slots[SLOTS] = {0};
    for (long i = 0; i < worker->operations; i++) {
        struct block *block = &slots[next_random(&worker->random) % SLOTS];
        if (!block->bytes) {
            acquire(worker, block);
            continue;
        }
        switch (next_random(&worker->random) % 8) {
        case 0:
            pass_on(worker, block);
            break;
        case 1:
        case 2:
        case 3:
            release(block);
            break;
        default:
            resize(worker, block);
            break;
        }
    }
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].bytes) release(&slots[i]);
    return NULL;
}

int main(int argc, char **argv) {
    REQUIRE(argc == 4);
    int threads = atoi(argv[1]);
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    for (int i = 0; i < threads; i++) {
        workers[i].operations = atol(argv[2]);
        workers[i].random = (uint64_t)atol(argv[3]) * 1000 + (uint64_t)i;
        REQUIRE(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    uint64_t checksum = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        checksum ^= workers[i].checksum;
    }
    for (int i = 0; i < 64; i++)
        if (exchange[i].bytes) release(&exchange[i]);
    free(workers);
    printf("%lx\n", (unsigned long)checksum);
    return 0;
}
