/* An allocator to preload whose functions call one another by their public names, at the end and in the
 * middle, over two steps too. It looks on at the C library's. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

void *malloc(size_t size) {
    return __libc_malloc(size);
}

void free(void *block) {
    __libc_free(block);
}

void *calloc(size_t count, size_t size) {
    size_t whole;
    void *block = __builtin_mul_overflow(count, size, &whole) ? NULL : malloc(whole);
    return block ? memset(block, 0, whole) : NULL;
}

void *realloc(void *block, size_t size) {
    if (block && !size) {
        free(block);
        return NULL;
    }
    void *moved = malloc(size);
    if (!moved || !block) return moved;
    size_t former = malloc_usable_size(block);
    memcpy(moved, block, former < size ? former : size);
    free(block);
    return moved;
}

void *memalign(size_t alignment, size_t size) {
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size) {
    void *block = aligned_alloc(alignment, size);
    if (!block) return ENOMEM;
    *ret = block;
    return 0;
}

void *valloc(size_t size) {
    return memalign(4096, size);
}
