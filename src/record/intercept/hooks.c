/* The hooked functions' cold paths, called by the entry code (entry_*.S) with the caller's registers.
 *
 * An allocation is either left as it is, or sampled. Where sampled blocks are marked (mark.h), a sampled
 * block is a little larger and begins behind its mark; its base is what the allocator knows. Otherwise it
 * stays where the allocator put it.
 *
 * errno stays as the allocator leaves it: the recorder restores it around its own system calls (unnoticed.h).
 */
#include "record/intercept/hooks.h"

#include "record/intercept/bootstrap_heap.h"
#include "record/intercept/export.h"
#include "record/intercept/nested_calls.h"
#include "record/intercept/real_allocator.h"
#include "record/sample/address_filter.h"
#include "record/sample/mark.h"
#include "record/sample/recorder.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

typedef const struct unwind_registers caller;

static_assert(offsetof(struct real_allocator, malloc) == REAL_MALLOC &&
                  offsetof(struct real_allocator, free) == REAL_FREE &&
                  offsetof(struct real_allocator, calloc) == REAL_CALLOC &&
                  offsetof(struct real_allocator, realloc) == REAL_REALLOC &&
                  offsetof(struct real_allocator, posix_memalign) == REAL_POSIX_MEMALIGN &&
                  offsetof(struct real_allocator, aligned_alloc) == REAL_ALIGNED_ALLOC &&
                  offsetof(struct real_allocator, memalign) == REAL_MEMALIGN &&
                  offsetof(struct real_allocator, malloc_usable_size) == REAL_USABLE_SIZE,
    "the entry code jumps through these");

void *hooks_calloc(size_t count, size_t size, caller *at);
void *hooks_realloc(void *block, size_t size, caller *at);
void *entry_realloc_always(void *block, size_t size);
void *hooks_reallocarray(void *block, size_t count, size_t size, caller *at);
int hooks_posix_memalign(void **ret, size_t alignment, size_t size, caller *at);
void *hooks_aligned_alloc(size_t alignment, size_t size, caller *at);
void *hooks_memalign(size_t alignment, size_t size, caller *at);
void *hooks_valloc(size_t size, caller *at);
void *hooks_pvalloc(size_t size, caller *at);
void hooks_free(void *block);
void entry_free_filtered(void *block);
void *entry_realloc_filtered(void *block, size_t size);
size_t hooks_malloc_usable_size(void *block);
size_t entry_usable_size_marked(void *block);

/* What the entry code jumps to for blocks that carry no mark, for those that begin a page and for resizing.
 */
void (*hooks_next_free)(void *) = hooks_free;
void (*hooks_next_free_page)(void *) = hooks_free;
void *(*hooks_next_realloc)(void *, size_t) = entry_realloc_always;
size_t (*hooks_next_usable_size)(void *) = hooks_malloc_usable_size;

/* Which needs no look at the mark where blocks never have one. */
void hooks_choose_usable_size(bool marks) {
    if (real_allocator.malloc_usable_size)
        hooks_next_usable_size = marks ? entry_usable_size_marked : real_allocator.malloc_usable_size;
}

static _Atomic(enum unmarked) treatment;

/* Relaxed: written when recording begins; blocks from before it are in no table, however they are treated. */
static inline enum unmarked unmarked(void) {
    return atomic_load_explicit(&treatment, memory_order_relaxed);
}

void hooks_treat_unmarked(enum unmarked how) {
    static void *(*const resize[])(void *, size_t) = {entry_realloc_always, entry_realloc_filtered};
    static void (*const release[])(void *) = {hooks_free, entry_free_filtered};
    atomic_store_explicit(&treatment, how, memory_order_relaxed);
    hooks_next_realloc = how == UNMARKED_IGNORE ? real_allocator.realloc : resize[how];
    hooks_next_free = hooks_next_free_page = how == UNMARKED_IGNORE ? real_allocator.free : release[how];
}

/* Blocks that are marked now stay so; free knows them by their mark. */
void hooks_stop_marking(void) {
    if (recorder_stop_marking() && unmarked() == UNMARKED_IGNORE) hooks_treat_unmarked(UNMARKED_FILTER);
}

/* ---- allocation ---- */

static void note_unmarked(const void *block) {
    if (unmarked() == UNMARKED_LOOK_UP) return;
    address_filter_add(block);
    /* Relaxed: who frees the block has it from us, or from who has. */
    if (mark_begins_page(block) || mark_is_tagged(block))
        __atomic_store_n(&hooks_next_free_page, entry_free_filtered, __ATOMIC_RELAXED);
}

/* Records a sampled block that carries no mark. The filter must not count one that is not in the table, nor
 * one twice. */
static __attribute__((noinline)) void record_unmarked(const void *block, size_t size, caller *at) {
    note_unmarked(block);
    enum outcome outcome = recorder_sample_unmarked(mark_without_tag(block), size, at);
    if (outcome != OUTCOME_RECORDED && unmarked() != UNMARKED_LOOK_UP) address_filter_remove(block);
}

static void record_marked(void *block, uint64_t distance, size_t size, caller *at) {
    struct sample sample = recorder_sample(block, size, 0, at);
    mark_set(block, distance, &sample);
}

/* Takes a block out of the live table if it is there. */
static bool forget(const void *block, uint64_t distance, struct forgotten *ret_forgotten) {
    if (distance) return recorder_forget(block, ret_forgotten);
    if (unmarked() == UNMARKED_LOOK_UP)
        return recorder_forget_unmarked(mark_without_tag(block), ret_forgotten);
    /* Relaxed: address_filter.h says why. */
    if (!atomic_load_explicit(address_filter_place(block), memory_order_relaxed)) return false;
    if (!recorder_forget_unmarked(mark_without_tag(block), ret_forgotten)) return false;
    address_filter_remove(block);
    return true;
}

enum family { MALLOC, CALLOC, POSIX_MEMALIGN, ALIGNED_ALLOC, MEMALIGN, VALLOC, PVALLOC };

/* By the function that the program called: an allocator may serve some of them and leave others to the C
 * library. */
static inline void *plain(enum family family, size_t alignment, size_t size) {
    switch (family) {
    case MALLOC:
        return real_allocator.malloc(size);
    case CALLOC:
        return real_allocator.calloc(1, size);
    case ALIGNED_ALLOC:
        return real_allocator.aligned_alloc(alignment, size);
    case MEMALIGN:
        return real_allocator.memalign(alignment, size);
    case VALLOC:
        return real_allocator.valloc(size);
    case PVALLOC:
        return real_allocator.pvalloc(size);
    case POSIX_MEMALIGN:
        break;
    }
    void *block;
    return real_allocator.posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

/* A block behind room for a mark: `*ret_distance` bytes, or none where there was no memory for that.
 * Alignment 0 is whatever malloc gives. */
static inline void *behind_room(enum family family, size_t alignment, size_t size, uint64_t *ret_distance) {
    size_t room = alignment > MARK_ROOM ? alignment : MARK_ROOM, total, most;
    if (alignment && alignment < sizeof(void *)) alignment = sizeof(void *);
    if (__builtin_add_overflow(size, room, &total)) total = SIZE_MAX;
    int error = errno;
    char *base = plain(family, alignment, total);
    *ret_distance = 0;
    if (!base) {
        errno = error;
        return plain(family, alignment, size);
    }
    if (mark_begins_page(base + room)) { /* one in 128: take another one that need not */
        char *larger = __builtin_add_overflow(total, room, &most) ? NULL : plain(family, alignment, most);
        if (!larger) {
            errno = error;
            return base;
        }
        real_allocator.free(base);
        base = larger;
    }
    char *block = mark_place(base, room);
    *ret_distance = (uint64_t)(block - base);
    return block;
}

static inline void *allocate(enum family family, size_t alignment, size_t size, caller *at) {
    if (!real_allocator_ready()) return bootstrap_heap_allocate(alignment, size);
    if (nested_calls_is_nested(at) || !recorder_take(size)) return plain(family, alignment, size);

    /* What is aligned to pages cannot have a mark in front. */
    bool mark = recorder_uses_marks() && alignment <= PAGE_MASK;
    uint64_t distance = 0;
    void *block = mark ? behind_room(family, alignment, size, &distance) : plain(family, alignment, size);
    if (!block)
        recorder_refund(size);
    else if (distance)
        record_marked(block, distance, size, at);
    else if (mark && unmarked() == UNMARKED_IGNORE)
        recorder_drop(DROP_LIVE_TABLE); /* its free would not be noticed */
    else
        record_unmarked(block, size, at);
    return block;
}

/* In exact mode every allocation comes through here: all of it in one function. */
__attribute__((flatten)) void *hooks_malloc(size_t size, caller *at) {
    return allocate(MALLOC, 0, size, at);
}

void *hooks_calloc(size_t count, size_t size, caller *at) {
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    return allocate(CALLOC, 0, total, at);
}

/* ---- the aligned ones: what they say about bad alignments is the allocator's business ---- */

static bool is_power_of_two(size_t value) {
    return value && (value & (value - 1)) == 0;
}

int hooks_posix_memalign(void **ret, size_t alignment, size_t size, caller *at) {
    if (!is_power_of_two(alignment) || alignment % sizeof(void *) != 0) return EINVAL;
    void *block = allocate(POSIX_MEMALIGN, alignment, size, at);
    if (!block) return ENOMEM;
    *ret = block;
    return 0;
}

void *hooks_aligned_alloc(size_t alignment, size_t size, caller *at) {
    if (!is_power_of_two(alignment) && real_allocator_ready())
        return real_allocator.aligned_alloc(alignment, size);
    return allocate(ALIGNED_ALLOC, alignment, size, at);
}

void *hooks_memalign(size_t alignment, size_t size, caller *at) {
    if (!is_power_of_two(alignment) && real_allocator_ready())
        return real_allocator.memalign(alignment, size);
    return allocate(MEMALIGN, alignment, size, at);
}

void *hooks_valloc(size_t size, caller *at) {
    return allocate(VALLOC, PAGE_MASK + 1, size, at);
}

void *hooks_pvalloc(size_t size, caller *at) {
    size_t rounded, page = getauxval(AT_PAGESZ);
    if (__builtin_add_overflow(size, page - 1, &rounded)) {
        errno = ENOMEM;
        return NULL;
    }
    return allocate(PVALLOC, page, rounded & -page, at);
}

void *hooks_allocate_aligned(size_t alignment, size_t size, caller *at) {
    return allocate(POSIX_MEMALIGN, alignment > sizeof(void *) ? alignment : sizeof(void *), size, at);
}

/* ---- free ---- */

static __attribute__((noinline)) void free_unmarked(void *block) {
    struct forgotten forgotten;
    if (!real_allocator_ready()) return;
    if (forget(block, 0, &forgotten)) recorder_freed(&forgotten);
    real_allocator.free(block);
}

/* Like hooks_malloc. */
__attribute__((flatten)) void hooks_free(void *block) {
    if (!block) return;
    uint64_t distance = mark_distance(block);
    if (!distance) return free_unmarked(block);
    if (distance == DISTANCE_BOOTSTRAP || !real_allocator_ready()) return;
    mark_clear(block);
    recorder_end(block, 0);
    real_allocator.free((char *)block - distance);
}

/* C23's forms of free carry a size that we do not need. */
EXPORT void free_sized(void *block, size_t size);
EXPORT void free_aligned_sized(void *block, size_t alignment, size_t size);

void free_sized(void *block, size_t size) {
    (void)size;
    hooks_free(block);
}

void free_aligned_sized(void *block, size_t alignment, size_t size) {
    (void)alignment;
    (void)size;
    hooks_free(block);
}

size_t hooks_malloc_usable_size(void *block) {
    if (!block || !real_allocator_ready()) return 0;
    uint64_t distance = mark_distance(block);
    if (distance == DISTANCE_BOOTSTRAP) return bootstrap_heap_size(block);
    return real_allocator.malloc_usable_size
               ? real_allocator.malloc_usable_size((char *)block - distance) - distance
               : 0;
}

/* ---- realloc: nothing is decided before the allocator has succeeded ---- */

static void *move_early(void *block, size_t size, caller *at) {
    size_t old = bootstrap_heap_size(block);
    void *moved = hooks_malloc(size, at);
    if (moved) memcpy(moved, block, old < size ? old : size);
    return moved;
}

static size_t with_room(size_t size, uint64_t distance) {
    size_t room = distance > 2 * MARK_ROOM ? distance : 2 * MARK_ROOM, total;
    return __builtin_add_overflow(size, room, &total) ? SIZE_MAX : total;
}

/* Resizes a block that is marked, or is to be, and moves its contents so that it neither begins a page nor
 * leaves its piece of memory. The result is yet to be marked, or loses its mark where blocks are not marked
 * any more. */
static void *resize_marked(void *block, uint64_t distance, size_t size, uint64_t *ret_distance) {
    char *base = (char *)block - distance;
    size_t usable = real_allocator.malloc_usable_size(base) - distance;
    char *resized = real_allocator.realloc(base, with_room(size, distance));
    if (!resized) return NULL;
    char *settled = recorder_uses_marks() ? mark_place(resized, MARK_ROOM) : resized;
    *ret_distance = (uint64_t)(settled - resized);
    if (*ret_distance != distance) memmove(settled, resized + distance, usable < size ? usable : size);
    return settled;
}

/* The same for a block that carries a mark and is neither known nor sampled. A program that makes a text
 * longer piece by piece comes here with most of them, and the block mostly stays where it is. */
static void *resize_unknown(void *block, uint64_t distance, size_t size) {
    char *base = (char *)block - distance;
    mark_clear(block);
    char *resized = real_allocator.realloc(base, with_room(size, distance));
    char *settled = resized ? mark_place(resized, MARK_ROOM) : NULL;
    if (!resized || (resized == base && settled == block)) {
        mark_put_back(block);
        return settled;
    }
    uint64_t new_distance = (uint64_t)(settled - resized);
    if (new_distance != distance) memmove(settled, resized + distance, size);
    mark_set(settled, new_distance, &(struct sample){.slot = LIVE_NONE});
    return settled;
}

/* The allocator could not resize: all is as before. */
static void restore(void *block, uint64_t distance, const struct forgotten *old) {
    if (distance) {
        bool restored = old && recorder_restore(block, old);
        mark_set(block, distance, restored ? &old->sample : &(struct sample){.slot = LIVE_NONE});
    } else if (old) {
        recorder_restore_unmarked(mark_without_tag(block), old);
        note_unmarked(block);
    }
}

void *hooks_realloc(void *block, size_t size, caller *at) {
    if (!block) return hooks_malloc(size, at);
    uint64_t distance = mark_distance(block);
    if (distance == DISTANCE_BOOTSTRAP) return move_early(block, size, at);
    if (!real_allocator_ready()) return NULL;
    if (size == 0 && distance) { /* only the C library's blocks are marked, and it frees in this case */
        hooks_free(block);
        return NULL;
    }
    bool sampled = !nested_calls_is_nested(at) && recorder_take(size);
    bool mark = distance || (sampled && recorder_uses_marks());
    if (distance && !sampled && mark_slot(block) == LIVE_NONE && recorder_uses_marks())
        return resize_unknown(block, distance, size);

    struct forgotten old;
    bool known = forget(block, distance, &old);
    if (distance) mark_clear(block);
    uint64_t settled = 0;
    void *resized =
        mark && size ? resize_marked(block, distance, size, &settled) : real_allocator.realloc(block, size);
    if (!resized && size) {
        restore(block, distance, known ? &old : NULL);
        if (sampled) recorder_refund(size);
    } else {
        if (known) recorder_freed(&old);
        if (sampled && resized && settled)
            record_marked(resized, settled, size, at);
        else if (sampled && resized)
            record_unmarked(resized, size, at);
        else if (settled) /* the mark stays on a block that is not sampled any more: it does no harm */
            mark_set(resized, settled, &(struct sample){.slot = LIVE_NONE});
    }
    return resized;
}

void *hooks_reallocarray(void *block, size_t count, size_t size, caller *at) {
    if (real_allocator_ready() && real_allocator_is_shadowed())
        return real_allocator.reallocarray(block, count, size);
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    return hooks_realloc(block, total, at);
}
