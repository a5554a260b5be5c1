/* The hooked functions' cold paths, called by the entry code (entry.S) with the caller's registers.
 *
 * An allocation is either left as it is, or sampled. Where sampled blocks are marked (mark.h), a sampled
 * block is a little larger and begins behind its mark; its base is what the allocator knows. Otherwise it
 * stays where the allocator put it.
 *
 * errno is kept: the recorder's own system calls must not show. */
#include "hook/hooks.h"
#include "core/arena.h"
#include "hook/filter.h"
#include "hook/mark.h"
#include "hook/operators.h"
#include "hook/real.h"
#include "hook/recorder.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef const struct unwind_registers caller;

static_assert(offsetof(struct real, malloc) == REAL_MALLOC && offsetof(struct real, free) == REAL_FREE &&
                  offsetof(struct real, calloc) == REAL_CALLOC &&
                  offsetof(struct real, realloc) == REAL_REALLOC &&
                  offsetof(struct real, malloc_usable_size) == REAL_USABLE_SIZE,
    "entry.S jumps through these");

void *hook_malloc(size_t size, caller *at);
void *hook_calloc(size_t count, size_t size, caller *at);
void *hook_realloc(void *block, size_t size, caller *at);
void *hook_realloc_always(void *block, size_t size);
void *hook_reallocarray(void *block, size_t count, size_t size, caller *at);
int hook_posix_memalign(void **ret, size_t alignment, size_t size, caller *at);
void *hook_aligned_alloc(size_t alignment, size_t size, caller *at);
void *hook_memalign(size_t alignment, size_t size, caller *at);
void *hook_valloc(size_t size, caller *at);
void *hook_pvalloc(size_t size, caller *at);
void *hook_new(size_t size, size_t second, size_t third, caller *at, unsigned form);
void hook_free(void *block);
void hook_free_filtered(void *block);
void *hook_realloc_filtered(void *block, size_t size);
size_t hook_malloc_usable_size(void *block);
size_t hook_usable_size_marked(void *block);
void hook_before_dlopen(const char *path, int mode);

/* What the entry code jumps to for blocks that carry no mark, for those that begin a page and for resizing.
 */
void (*hook_free_plain)(void *) = hook_free;
void (*hook_free_page)(void *) = hook_free;
void *(*hook_realloc_plain)(void *, size_t) = hook_realloc_always;
size_t (*hook_usable_size)(void *) = hook_malloc_usable_size;

/* Which needs no look at the mark where blocks never have one. */
void hooks_choose_usable_size(bool marks) {
    if (real.malloc_usable_size) hook_usable_size = marks ? hook_usable_size_marked : real.malloc_usable_size;
}

_Atomic uint8_t hook_filter[1 << 16];
static enum unmarked unmarked;

void hooks_treat_unmarked(enum unmarked how) {
    static void *(*const resize[])(void *, size_t) = {hook_realloc_always, hook_realloc_filtered};
    static void (*const release[])(void *) = {hook_free, hook_free_filtered};
    unmarked = how;
    hook_realloc_plain = how == UNMARKED_IGNORE ? real.realloc : resize[how];
    hook_free_plain = hook_free_page = how == UNMARKED_IGNORE ? real.free : release[how];
}

void *(*hook_dlopen)(const char *, int);

void hook_before_dlopen(const char *path, int mode) {
    (void)path;
    /* Blocks that are marked now stay so; free knows them by their mark. */
    if ((mode & RTLD_DEEPBIND) && recorder_stop_marking()) hooks_treat_unmarked(UNMARKED_FILTER);
    if (!hook_dlopen) *(void **)&hook_dlopen = dlsym(RTLD_NEXT, "dlopen");
}

/* ---- allocation ---- */

static void note_unmarked(const void *block) {
    if (unmarked == UNMARKED_LOOK_UP) return;
    filter_add(block);
    if (begins_page(block)) hook_free_page = hook_free_filtered;
}

/* Records a sampled block. The filter must not count one that is not in the table, nor one twice. */
static void record(const void *block, size_t size, caller *at) {
    enum event_outcome outcome = recorder_sample(block, size, at);
    if (outcome != EVENT_RECORDED && unmarked != UNMARKED_LOOK_UP && !mark_distance(block))
        filter_remove(block);
}

/* Takes a block out of the live table if it is there. */
static bool forget(const void *block, uint64_t distance, struct forgotten *ret_forgotten) {
    bool ask = distance || unmarked == UNMARKED_LOOK_UP;
    if (!ask && !atomic_load_explicit(filter_place(block), memory_order_relaxed)) return false;
    if (!recorder_forget(block, ret_forgotten)) return false;
    if (!ask) filter_remove(block);
    return true;
}

enum family { MALLOC, CALLOC, POSIX_MEMALIGN, ALIGNED_ALLOC, MEMALIGN, VALLOC, PVALLOC };

struct request {
    enum family family;
    size_t alignment; /* 0: whatever malloc gives */
    size_t size;
};

/* By the function that the program called: an allocator may serve some of them and leave others to the C
 * library. */
static void *plain(struct request request) {
    switch (request.family) {
    case MALLOC:
        return real.malloc(request.size);
    case CALLOC:
        return real.calloc(1, request.size);
    case ALIGNED_ALLOC:
        return real.aligned_alloc(request.alignment, request.size);
    case MEMALIGN:
        return real.memalign(request.alignment, request.size);
    case VALLOC:
        return real.valloc(request.size);
    case PVALLOC:
        return real.pvalloc(request.size);
    case POSIX_MEMALIGN:
        break;
    }
    void *block;
    int error = real.posix_memalign(&block, request.alignment, request.size);
    if (error == 0) return block;
    errno = error;
    return NULL;
}

/* A sampled block that stays as it is: the filter has to know it. */
static void *unmarked_sample(struct request request) {
    void *block = plain(request);
    if (block) note_unmarked(block);
    return block;
}

static void *marked(struct request request) {
    if (request.alignment > PAGE_MASK) return unmarked_sample(request); /* it cannot have a mark in front */
    struct request larger = request;
    size_t alignment = request.alignment > MARK_ROOM ? request.alignment : MARK_ROOM;
    if (__builtin_add_overflow(request.size, 2 * alignment, &larger.size)) larger.size = SIZE_MAX;
    if (request.alignment && request.alignment < sizeof(void *)) larger.alignment = sizeof(void *);
    void *base = plain(larger);
    if (!base) return NULL;
    void *block = mark_place(base, alignment);
    mark_set(block, (uint64_t)((char *)block - (char *)base));
    return block;
}

static void *allocate(struct request request, caller *at) {
    if (!real_ready()) return early_allocate(request.alignment, request.size);
    if (!recorder_take(request.size)) return plain(request);

    void *block = recorder_marks() ? marked(request) : unmarked_sample(request);
    int error = errno;
    if (block)
        record(block, request.size, at);
    else
        recorder_refund(request.size);
    errno = error;
    return block;
}

void *hook_malloc(size_t size, caller *at) {
    return allocate((struct request){.family = MALLOC, .alignment = 0, .size = size}, at);
}

void *hook_calloc(size_t count, size_t size, caller *at) {
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    return allocate((struct request){.family = CALLOC, .alignment = 0, .size = total}, at);
}

/* ---- the aligned ones: what they say about bad alignments is the allocator's business ---- */

static bool is_power_of_two(size_t value) {
    return value && (value & (value - 1)) == 0;
}

int hook_posix_memalign(void **ret, size_t alignment, size_t size, caller *at) {
    if (!is_power_of_two(alignment) || alignment % sizeof(void *) != 0) return EINVAL;
    int error = errno;
    void *block =
        allocate((struct request){.family = POSIX_MEMALIGN, .alignment = alignment, .size = size}, at);
    errno = error;
    if (!block) return ENOMEM;
    *ret = block;
    return 0;
}

void *hook_aligned_alloc(size_t alignment, size_t size, caller *at) {
    if (!is_power_of_two(alignment) && real_ready()) return real.aligned_alloc(alignment, size);
    return allocate((struct request){.family = ALIGNED_ALLOC, .alignment = alignment, .size = size}, at);
}

void *hook_memalign(size_t alignment, size_t size, caller *at) {
    if (!is_power_of_two(alignment) && real_ready()) return real.memalign(alignment, size);
    return allocate((struct request){.family = MEMALIGN, .alignment = alignment, .size = size}, at);
}

void *hook_valloc(size_t size, caller *at) {
    return allocate((struct request){.family = VALLOC, .alignment = PAGE_MASK + 1, .size = size}, at);
}

void *hook_pvalloc(size_t size, caller *at) {
    size_t rounded;
    if (__builtin_add_overflow(size, PAGE_MASK, &rounded)) {
        errno = ENOMEM;
        return NULL;
    }
    return allocate(
        (struct request){.family = PVALLOC, .alignment = PAGE_MASK + 1, .size = rounded & ~(size_t)PAGE_MASK},
        at);
}

/* ---- C++ ---- */

void *hook_new(size_t size, size_t second, size_t third, caller *at, unsigned form) {
    struct request request = {.family = MALLOC, .size = size};
    if (form >= 4) {
        request.family = POSIX_MEMALIGN;
        request.alignment = second > sizeof(void *) ? second : sizeof(void *);
    }
    if (real_ready() && operators_whose() == BY_PROGRAM) return operators_next(form, size, second, third);
    void *block = allocate(request, at);
    return block ? block : operators_fail(form, size, second, third);
}

/* ---- free ---- */

void hook_free(void *block) {
    if (!block) return;
    uint64_t distance = mark_distance(block);
    if (distance == DISTANCE_EARLY || !real_ready()) return;
    if (distance) mark_clear(block);
    int error = errno;
    struct forgotten forgotten;
    if (forget(block, distance, &forgotten)) recorder_freed(&forgotten);
    errno = error;
    real.free((char *)block - distance);
}

/* C23's forms of free carry a size that we do not need. */
EXPORT void free_sized(void *block, size_t size);
EXPORT void free_aligned_sized(void *block, size_t alignment, size_t size);

void free_sized(void *block, size_t size) {
    (void)size;
    hook_free(block);
}

void free_aligned_sized(void *block, size_t alignment, size_t size) {
    (void)alignment;
    (void)size;
    hook_free(block);
}

size_t hook_malloc_usable_size(void *block) {
    if (!block || !real_ready()) return 0;
    uint64_t distance = mark_distance(block);
    if (distance == DISTANCE_EARLY) return early_size(block);
    return real.malloc_usable_size ? real.malloc_usable_size((char *)block - distance) - distance : 0;
}

/* ---- realloc: nothing is decided before the allocator has succeeded ---- */

static void *move_early(void *block, size_t size, caller *at) {
    size_t old = early_size(block);
    void *moved = hook_malloc(size, at);
    if (moved) memcpy(moved, block, old < size ? old : size);
    return moved;
}

/* Moves a marked block's contents so that the block neither begins a page nor leaves its piece of memory. */
static void *settle(char *base, uint64_t distance, size_t size) {
    void *block = mark_place(base, MARK_ROOM);
    uint64_t settled = (uint64_t)((char *)block - base);
    if (settled != distance) memmove(block, base + distance, size);
    mark_set(block, settled);
    return block;
}

/* Resizes a block that is marked, or is to be. Marks stay on a block that is not sampled any more: they do no
 * harm. */
static void *resize_marked(void *block, uint64_t distance, size_t size) {
    char *base = (char *)block - distance;
    size_t room = distance > MARK_SPACE ? distance : MARK_SPACE, total;
    size_t usable = real.malloc_usable_size(base) - distance;
    if (__builtin_add_overflow(size, room, &total)) total = SIZE_MAX;
    if (distance) mark_clear(block);
    char *resized = real.realloc(base, total);
    if (resized) return settle(resized, distance, usable < size ? usable : size);
    if (distance) mark_set(block, distance);
    return NULL;
}

void *hook_realloc(void *block, size_t size, caller *at) {
    if (!block) return hook_malloc(size, at);
    uint64_t distance = mark_distance(block);
    if (distance == DISTANCE_EARLY) return move_early(block, size, at);
    if (!real_ready()) return NULL;
    if (size == 0 && distance) { /* only the C library's blocks are marked, and it frees in this case */
        hook_free(block);
        return NULL;
    }
    bool sampled = recorder_take(size);
    bool mark = distance || (sampled && recorder_marks());

    struct forgotten old;
    int error = errno;
    bool known = forget(block, distance, &old);
    errno = error;
    void *resized = mark && size ? resize_marked(block, distance, size) : real.realloc(block, size);
    error = errno;
    if (!resized && size) {
        if (known) recorder_restore(block, &old);
        if (known && !distance) note_unmarked(block);
        if (sampled) recorder_refund(size);
    } else {
        if (known) recorder_freed(&old);
        if (sampled && resized && !mark) note_unmarked(resized);
        if (sampled && resized) record(resized, size, at);
    }
    errno = error;
    return resized;
}

void *hook_reallocarray(void *block, size_t count, size_t size, caller *at) {
    if (real_ready() && real_is_shadowed()) return real.reallocarray(block, count, size);
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    return hook_realloc(block, total, at);
}
