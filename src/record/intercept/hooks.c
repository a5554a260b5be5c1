/* The cold paths of the malloc family. The entry code (entry_*.S) calls them with the caller's registers.
 *
 * An allocation is left as it is, or it is sampled. Where sampled blocks are marked (mark.h), the allocator is
 * asked for a larger block, and the program gets the part behind the mark. Otherwise a sampled block stays as the
 * allocator returned it.
 *
 * errno stays as the allocator leaves it: the recorder's own system calls do not touch it (platform/calls.h). */
#include "record/intercept/hooks.h"

#include "record/intercept/bootstrap_heap.h"
#include "record/intercept/export.h"
#include "record/intercept/nested_calls.h"
#include "record/intercept/real_allocator.h"
#include "record/sample/address_filter.h"
#include "record/sample/mark.h"
#include "record/sample/recorder.h"
#include "record/sample/work.h"

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
ANY_STACK void hooks_free(void *block);
void entry_free_filtered(void *block);
void *entry_realloc_filtered(void *block, size_t size);
ANY_STACK size_t hooks_malloc_usable_size(void *block);
size_t entry_usable_size_marked(void *block);

/* Where the entry code goes on: with free of a block without a mark, with free of a block that begins a page,
 * with realloc of a block without a mark, and with malloc_usable_size. */
void (*hooks_next_free)(void *) = hooks_free;
void (*hooks_next_free_page)(void *) = hooks_free;
void *(*hooks_next_realloc)(void *, size_t) = entry_realloc_always;
size_t (*hooks_next_usable_size)(void *) = hooks_malloc_usable_size;

/* Where blocks are never marked, malloc_usable_size goes straight to the allocator. */
void hooks_choose_usable_size(bool marks) {
    if (real_allocator.malloc_usable_size)
        hooks_next_usable_size = marks ? entry_usable_size_marked : real_allocator.malloc_usable_size;
}

static _Atomic(enum unmarked) treatment;

/* Relaxed: it changes when recording begins. Blocks from before that are in no table, so either value is right
 * for them. */
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

/* ---- allocation ---- */

/* Lets free notice a sampled block that carries no mark. */
static void note_unmarked(const void *block) {
    if (unmarked() == UNMARKED_LOOK_UP) return;
    address_filter_add(block);
    /* Relaxed: the thread that frees the block has it from this one, through the program's own synchronization. */
    if (mark_begins_page(block) || mark_is_tagged(block))
        __atomic_store_n(&hooks_next_free_page, entry_free_filtered, __ATOMIC_RELAXED);
}

/* Records a sampled block that carries no mark. The filter counts it before the live table has it. The count is
 * taken back if the sample was dropped, or took the place of a former block at this address, which is counted
 * already. */
static __attribute__((noinline)) void record_unmarked(const void *block, size_t size, caller *at) {
    note_unmarked(block);
    enum outcome outcome = recorder_sample_unmarked(mark_without_tag(block), size, at);
    if (outcome != OUTCOME_RECORDED && unmarked() != UNMARKED_LOOK_UP) address_filter_remove(block);
}

static void record_marked(void *block, uint64_t distance, size_t size, caller *at) {
    struct sample sample = recorder_sample(block, size, 0, at);
    mark_set(block, distance, &sample);
}

/* Takes a block out of the live table. False: it is not there. `distance`: that of its mark; 0: it carries none. */
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

/* Calls the allocator's function of the name that the program called. It may serve some names itself and leave
 * others to the C library. */
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

/* A block that begins `*ret_distance` bytes after its base, behind room for a mark. The distance is 0 if there
 * was memory for the block but not for the mark. NULL: there was no memory at all. Alignment 0: that of malloc. */
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
    /* About one in 256, if addresses are multiples of 16: take more memory, in which the block can begin later. */
    if (mark_begins_page(base + room)) {
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

/* The block is not sampled, or not to be recorded. */
static inline void *passed_over(void *block) {
    if (block && unmarked() == UNMARKED_LOOK_UP) recorder_note_ignored(mark_without_tag(block));
    return block;
}

static inline void *allocate(enum family family, size_t alignment, size_t size, caller *at) {
    if (!real_allocator_ready()) return bootstrap_heap_allocate(alignment, size);
    if (nested_calls_is_nested(at)) return plain(family, alignment, size);
    if (!recorder_take(size)) return passed_over(plain(family, alignment, size));

    /* A block that is aligned to pages begins a page, and cannot have a mark in front. */
    bool mark = recorder_uses_marks() && alignment <= PAGE_MASK;
    uint64_t distance = 0;
    void *block = mark ? behind_room(family, alignment, size, &distance) : plain(family, alignment, size);
    if (!block)
        recorder_refund(size);
    else if (distance)
        record_marked(block, distance, size, at);
    else if (mark && unmarked() == UNMARKED_IGNORE)
        recorder_drop(DROP_LIVE_TABLE); /* there was no memory for its mark: free would not notice it */
    else
        record_unmarked(block, size, at);
    return block;
}

/* Flattened: in exact mode every allocation runs this function. */
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

/* ---- the aligned ones: posix_memalign must refuse a bad alignment, the others do what the allocator does ---- */

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
    struct work work;
    if (!real_allocator_ready()) return;
    work_begin(&work);
    if (forget(block, 0, &forgotten)) recorder_freed(&forgotten);
    work_end(&work);
    real_allocator.free(block);
}

/* Flattened, as hooks_malloc is. */
__attribute__((flatten)) void hooks_free(void *block) {
    if (!block) return;
    uint64_t distance = mark_distance(block);
    if (!distance) return free_unmarked(block);
    if (distance == DISTANCE_BOOTSTRAP || !real_allocator_ready()) return;
    struct work work;
    work_begin(&work);
    mark_clear(block);
    recorder_end(block, 0);
    work_end(&work);
    real_allocator.free((char *)block - distance);
}

/* C23's forms of free. Size and alignment are not needed: they follow from the block. */
EXPORT ANY_STACK void free_sized(void *block, size_t size);
EXPORT ANY_STACK void free_aligned_sized(void *block, size_t alignment, size_t size);

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

/* A block of the bootstrap heap moves to the program's allocator. */
static void *move_from_bootstrap(void *block, size_t size, caller *at) {
    size_t old = bootstrap_heap_size(block);
    void *moved = hooks_malloc(size, at);
    if (moved) memcpy(moved, block, old < size ? old : size);
    return moved;
}

/* What to ask of realloc, so that `size` bytes fit behind the present distance and behind every distance of
 * mark_place. */
static size_t with_room(size_t size, uint64_t distance) {
    size_t room = distance > 2 * MARK_ROOM ? distance : 2 * MARK_ROOM, total;
    return __builtin_add_overflow(size, room, &total) ? SIZE_MAX : total;
}

/* Resizes a block that is marked (at `distance` from its base) or is to be marked (distance 0). Within the new
 * memory the contents move to a place where the block does not begin a page. Returns the block, which is to be
 * marked at `*ret_distance`. NULL: there is no memory. */
static void *resize_marked(void *block, uint64_t distance, size_t size, uint64_t *ret_distance) {
    char *base = (char *)block - distance;
    size_t usable = real_allocator.malloc_usable_size(base) - distance;
    char *resized = real_allocator.realloc(base, with_room(size, distance));
    if (!resized) return NULL;
    char *settled = mark_place(resized, MARK_ROOM);
    *ret_distance = (uint64_t)(settled - resized);
    if (*ret_distance != distance) memmove(settled, resized + distance, usable < size ? usable : size);
    return settled;
}

/* Resizes a block that carries a mark, is not live in the recording, and is not sampled now either. Most calls of
 * a program that makes a text longer piece by piece come here, and mostly the block stays where it is. */
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

/* The allocator could not resize the block: it is marked, and live in the recording, as before. `old`: NULL if it
 * was not live. */
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
    if (distance == DISTANCE_BOOTSTRAP) return move_from_bootstrap(block, size, at);
    if (!real_allocator_ready()) return NULL;
    /* Only blocks of the C library are marked, and its realloc frees in this case. */
    if (size == 0 && distance) {
        mark_clear(block);
        recorder_end(block, 0);
        real_allocator.free((char *)block - distance);
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
        else if (settled) /* not sampled any more, but its base lies in front of it: a mark without a slot */
            mark_set(resized, settled, &(struct sample){.slot = LIVE_NONE});
        else
            passed_over(resized);
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
