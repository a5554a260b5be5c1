/* pool: a pool of objects of one size, for a simulation in which sparks come and go.
 *
 *     pool [STEPS]
 *     malloscope run --exact -- pool
 *
 * Objects that are freed go to a list and are given out again: a malloc profiler sees the chunks of the pool
 * and never that most of them is free. The lines marked `malloscope` report the objects. */
#include <stdio.h>
#include <stdlib.h>

#include <malloscope.h>

/* ---- the pool ---- */

#define CHUNK_OBJECTS 256

union slot {
    union slot *next_free;
    max_align_t object;
};

struct pool {
    size_t object_size;
    union slot *free;
    mscope_heap heap; /* malloscope */
};

static struct pool pool_make(const char *name, size_t object_size) {
    size_t rounded = (object_size + sizeof(union slot) - 1) / sizeof(union slot) * sizeof(union slot);
    struct pool pool = {.object_size = rounded};
    pool.heap = mscope_heap_register(name, NULL); /* malloscope */
    return pool;
}

static void pool_grow(struct pool *pool) {
    char *chunk = malloc(CHUNK_OBJECTS * pool->object_size);
    if (!chunk) {
        perror("pool");
        exit(1);
    }
    mscope_heap_backing(pool->heap, chunk, CHUNK_OBJECTS * pool->object_size); /* malloscope */
    for (size_t i = CHUNK_OBJECTS; i-- > 0;) {
        union slot *slot = (union slot *)(chunk + i * pool->object_size);
        slot->next_free = pool->free;
        pool->free = slot;
    }
}

static void *pool_alloc(struct pool *pool) {
    if (!pool->free) pool_grow(pool);
    union slot *slot = pool->free;
    pool->free = slot->next_free;
    mscope_heap_alloc(pool->heap, slot, pool->object_size); /* malloscope */
    return slot;
}

static void pool_free(struct pool *pool, void *object) {
    mscope_heap_free(pool->heap, object); /* malloscope: before another thread can be given the address */
    union slot *slot = object;
    slot->next_free = pool->free;
    pool->free = slot;
}

/* ---- what it is used for ---- */

struct spark {
    double x, y, dx, dy;
    int age, life;
    struct spark *next;
};

static unsigned dice(void) {
    static unsigned state = 1;
    state = state * 1103515245u + 12345u;
    return state >> 16 & 0x7fff;
}

static struct spark *strike(struct pool *pool, struct spark *sparks) {
    for (unsigned i = 20 + dice() % 20; i > 0; i--) {
        struct spark *spark = pool_alloc(pool);
        *spark = (struct spark){.dx = dice() % 100 / 50. - 1, .dy = dice() % 100 / 50. - 1, .next = sparks};
        spark->life = 5 + (int)(dice() % 20);
        sparks = spark;
    }
    return sparks;
}

static void move(struct pool *pool, struct spark **link) {
    while (*link) {
        struct spark *spark = *link;
        spark->x += spark->dx;
        spark->y += spark->dy;
        if (++spark->age < spark->life) {
            link = &spark->next;
            continue;
        }
        *link = spark->next;
        pool_free(pool, spark);
    }
}

int main(int argc, char **argv) {
    int steps = argc > 1 ? atoi(argv[1]) : 100;
    struct pool pool = pool_make("sparks", sizeof(struct spark));
    struct spark *sparks = NULL;
    for (int step = 0; step < steps; step++) {
        sparks = strike(&pool, sparks);
        move(&pool, &sparks);
    }
    size_t flying = 0;
    for (const struct spark *spark = sparks; spark; spark = spark->next) flying++;
    printf("%zu sparks of %zu bytes are in the air\n", flying, pool.object_size);
    return 0;
}
