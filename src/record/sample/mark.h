/* The mark that sampled blocks carry, so that free() can tell them from others with one compare and finds
 * what it has to know beside the block.
 *
 *     base                                                               block
 *      │ ...   distance:16 birth:48   check:16 size:48   slot:32 stack:32   MARK │ what the program got
 *      └─────────────────────────────────────────────────────────────────────────┘
 *        32 or 64 bytes, or the alignment asked for
 *
 * The word before a block belongs to the allocator (glibc keeps the chunk's size there) or to the block
 * before it; neither is likely to be MARK, and `check`, which depends on the block's address, settles it. A
 * marked block never begins a page: free() must not look at the word before such a block, because with some
 * allocators the page before is not mapped. The mark tells all that is needed to free the block, whatever has
 * become of the recording. */
#ifndef MALLOSCOPE_RECORD_SAMPLE_MARK_H
#define MALLOSCOPE_RECORD_SAMPLE_MARK_H

/* Sign-extended by the processor from 32 bits: no allocator's size. The entry code compares with it. */
#define MARK_IMMEDIATE -0x5a3c1e79
#define MARK_OBJECT                                                                                          \
    UINT64_C(0xffffffffa5c3e147) /* of blocks that an interpreter's allocator cut out itself */
#define PAGE_MASK 0xfff
#define TAG_SHIFT 56 /* see mark_is_tagged */

#ifndef __ASSEMBLER__

#include "core/events.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MARK_ROOM sizeof(struct mark)

struct mark {
    uint64_t birth_and_distance; /* the birth in units of 2^BIRTH_SHIFT ns */
    uint64_t size_and_check;
    uint64_t stack_and_slot;
    uint64_t mark;
};

#define BIRTH_SHIFT 4

static inline bool mark_begins_page(const void *block) {
    return ((uintptr_t)block & PAGE_MASK) == 0;
}

/* On aarch64 a pointer's upper byte may be a tag, which the memory it points to must have too (MTE, switched
 * on by GLIBC_TUNABLES): who reads the word in front of a block by the block's pointer is stopped. */
static inline bool mark_is_tagged(const void *block) {
#if defined(__aarch64__)
    return (uintptr_t)block >> TAG_SHIFT != 0;
#else
    return false;
#endif
}

static inline const void *mark_without_tag(const void *block) {
    return mark_is_tagged(block) ? (const void *)((uintptr_t)block & ((UINT64_C(1) << TAG_SHIFT) - 1))
                                 : block;
}

/* Depends on all of the mark and on where it is. */
static inline uint64_t mark_check(const struct mark *mark) {
    uint64_t sum =
        mark->birth_and_distance ^ mark->stack_and_slot ^ mark->size_and_check >> 16 ^ (uintptr_t)mark;
    return sum * UINT64_C(0x9e3779b97f4a7c15) >> 48;
}

#define DISTANCE_BOOTSTRAP                                                                                   \
    1u /* in place of a distance: a block of the early heap (real_allocator.h), never given back */

/* Marks the block that begins `distance` bytes (32 to 65535) after its base. */
static inline void mark_set_as(void *block, uint64_t distance, const struct sample *sample, uint64_t kind) {
    struct mark *mark = (struct mark *)block - 1;
    mark->birth_and_distance = sample->birth >> BIRTH_SHIFT << 16 | distance;
    mark->size_and_check = sample->size << 16;
    mark->stack_and_slot = (uint64_t)sample->stack << 32 | sample->slot;
    mark->size_and_check |= mark_check(mark);
    mark->mark = kind;
}
static inline void mark_set(void *block, uint64_t distance, const struct sample *sample) {
    mark_set_as(block, distance, sample, (uint64_t)(int64_t)MARK_IMMEDIATE);
}

/* The distance of a marked block from its base, or 0 if it is not marked. What stands before a block that is
 * not belongs to its allocator, and can be read. */
__attribute__((no_sanitize("address", "thread"))) static inline uint64_t mark_distance_as(
    const void *block, uint64_t kind) {
    const struct mark *mark = (const struct mark *)block - 1;
    if (mark_begins_page(block) || mark_is_tagged(block) || mark->mark != kind) return 0;
    return (mark->size_and_check & 0xffff) == mark_check(mark) ? mark->birth_and_distance & 0xffff : 0;
}
static inline uint64_t mark_distance(const void *block) {
    return mark_distance_as(block, (uint64_t)(int64_t)MARK_IMMEDIATE);
}

static inline uint32_t mark_slot(const void *block) {
    return (uint32_t)((const struct mark *)block - 1)->stack_and_slot;
}

/* What was marked, at a moment up to `now`. */
static inline struct sample mark_sample(const void *block, uint64_t now) {
    const struct mark *mark = (const struct mark *)block - 1;
    uint64_t birth = mark->birth_and_distance >> 16;
    uint64_t age = ((now >> BIRTH_SHIFT) - birth) & ((UINT64_C(1) << 48) - 1);
    return sample_of_malloc(mark->size_and_check >> 16, ((now >> BIRTH_SHIFT) - age) << BIRTH_SHIFT,
        (uint32_t)(mark->stack_and_slot >> 32), mark_slot(block));
}

static inline void mark_clear(void *block) {
    ((struct mark *)block - 1)->mark = 0;
}

/* Undoes that: the rest of the mark is as it was. */
static inline void mark_put_back(void *block) {
    ((struct mark *)block - 1)->mark = (uint64_t)(int64_t)MARK_IMMEDIATE;
}

/* Where a marked block of alignment `alignment` (32 to 2048) goes in a piece of memory that begins at `base`:
 * `alignment` bytes further on, or twice as many. */
static inline void *mark_place(void *base, size_t alignment) {
    char *block = (char *)base + alignment;
    return mark_begins_page(block) ? block + alignment : block;
}

#endif
#endif
