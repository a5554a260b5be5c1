/* A program that carries its own malloc in its executable, one whose functions call each other in ways that make it
 * wrong to watch malloc and free alone: realloc releases the old block by an inner function, aligned_alloc returns an
 * address inside of what it got from malloc, and reallocarray calls realloc for large blocks only. */
#include "attach_target.h"

#include <errno.h>

/* The program calls the functions themselves, and not copies of them in main. */
#define NOT_INLINED __attribute__((noipa))

/* Stands in front of every block. */
struct head {
    size_t size, released;
};

static _Alignas(64) char room[1 << 20];
static size_t used;

static struct head *head_of(void *block) {
    return (struct head *)block - 1;
}

__attribute__((noinline)) static void release(void *block) {
    head_of(block)->released = 1;
}

NOT_INLINED void *malloc(size_t size) {
    size_t start = (used + sizeof(struct head) + 15) & ~(size_t)15;
    if (size > sizeof room - start) return NULL;
    used = start + size;
    *head_of(room + start) = (struct head){size, 0};
    return room + start;
}

NOT_INLINED void free(void *block) {
    if (block) release(block);
}

NOT_INLINED void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    void *block = malloc(bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

static inline void *move(void *old, size_t size) {
    void *new = malloc(size);
    if (!new || !old) return new;
    size_t before = head_of(old)->size;
    memcpy(new, old, before < size ? before : size);
    release(old);
    return new;
}

NOT_INLINED void *realloc(void *old, size_t size) {
    return move(old, size);
}

NOT_INLINED void *reallocarray(void *old, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return bytes < 64 ? move(old, bytes) : realloc(old, bytes);
}

NOT_INLINED void *aligned_alloc(size_t alignment, size_t size) {
    char *inside = malloc(size + alignment + sizeof(struct head));
    if (!inside) return NULL;
    void *block = (void *)(((uintptr_t)inside + sizeof(struct head) + alignment) & ~(alignment - 1));
    *head_of(block) = (struct head){size, 0};
    return block;
}

static void *logged(void *block, size_t size) {
    keep(block);
    note('a', 0, block, size);
    return block;
}

static void *resized(uint64_t before, void *block, size_t size) {
    keep(block);
    note('r', before, block, size);
    return block;
}

int main(void) {
    volatile size_t half = SIZE_MAX / 2;
    wait_until_attached();
    void *block = logged(malloc(100), 100);
    for (size_t size = 101; size <= 200; size++) block = resized((uint64_t)block, realloc(block, size), size);
    block = resized((uint64_t)block, reallocarray(block, 3, 9), 27);
    block = resized((uint64_t)block, reallocarray(block, 9, 99), 891);
    if (reallocarray(block, half, 3)) abort();
    void *aligned[10], *cleared = logged(calloc(7, 11), 77);
    for (int i = 0; i < 10; i++) aligned[i] = logged(aligned_alloc(256, 500), 500);
    void *all[] = {block, cleared};
    for (int i = 0; i < 10; i++) {
        note('f', 0, aligned[i], 0);
        free(aligned[i]);
    }
    for (int i = 0; i < 2; i++) {
        note('f', 0, all[i], 0);
        free(all[i]);
    }
    wait_until_detached();
}
