/* The mark in front of a sampled block: free tells a sampled block from others with one compare, and finds beside
 * the block all that it has to know.
 *
 *     base                                                                        block
 *      │ ...   distance:16 birth:48   check:16 size:48   slot:32 stack:32   MARK   │ what the program got
 *      └──────────────────────────── distance bytes ───────────────────────────────┘
 *
 * The allocator knows the base, the program knows the block. `distance` is 32 bytes, or the block's alignment if
 * that is more; twice as much where the block would begin a page otherwise.
 *
 * The word in front of a block without a mark belongs to the allocator (glibc keeps the chunk's size there) or to
 * the block before it. It is unlikely to be MARK; where it is, `check`, which depends on the other fields and on
 * the address, is unlikely to be right as well.
 *
 * A marked block never begins a page. For a block that does, free must not read the word in front of it: with
 * some allocators the page before is not mapped.
 *
 * What is given back to the allocator follows from the mark alone. So damage to the recording, a file that other
 * processes can write to, does not reach the program's heap. */
#ifndef MALLOSCOPE_RECORD_SAMPLE_MARK_H
#define MALLOSCOPE_RECORD_SAMPLE_MARK_H

/* MARK, as the entry code (entry_*.S) compares with it: the processor sign-extends these 32 bits to 64. No
 * allocator has a chunk of that size. */
#define MARK_IMMEDIATE -0x5a3c1e79
#define PAGE_MASK      0xfff
#define TAG_SHIFT      56 /* a pointer's tag begins there (mark_is_tagged) */

#ifndef __ASSEMBLER__

#include "core/events.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* MARK of objects that lie in an interpreter's own allocator (python_objects.c). */
#define MARK_OBJECT UINT64_C(0xffffffffa5c3e147)

#define MARK_ROOM sizeof(struct mark)

struct mark {
    uint64_t birth_and_distance; /* the birth in units of 2^SAMPLE_BIRTH_SHIFT ns */
    uint64_t size_and_check;
    uint64_t stack_and_slot;
    uint64_t mark;
};

static inline bool mark_begins_page(const void *block) {
    return ((uintptr_t)block & PAGE_MASK) == 0;
}

/* On aarch64 the upper byte of a pointer may be a tag, which the memory that it points to must have, too (MTE,
 * which GLIBC_TUNABLES switches on). The word in front of a block has another tag: reading it by the block's
 * pointer is a fault. */
static inline bool mark_is_tagged(const void *block) {
#if defined(__aarch64__)
    return (uintptr_t)block >> TAG_SHIFT != 0;
#else
    (void)block;
    return false;
#endif
}

static inline const void *mark_without_tag(const void *block) {
    return mark_is_tagged(block) ? (const void *)((uintptr_t)block & ((UINT64_C(1) << TAG_SHIFT) - 1))
                                 : block;
}

/* The value of `check`: depends on all other fields but `mark`, and on where the mark is. */
static inline uint64_t mark_check(const struct mark *mark) {
    uint64_t sum =
        mark->birth_and_distance ^ mark->stack_and_slot ^ mark->size_and_check >> 16 ^ (uintptr_t)mark;
    return sum * UINT64_C(0x9e3779b97f4a7c15) >> 48;
}

/* Stands in place of a distance: the block is one of the bootstrap heap (bootstrap_heap.h), which takes nothing
 * back. */
#define DISTANCE_BOOTSTRAP 1u

/* Writes the mark of the block that begins `distance` bytes (32 to 65,535) after its base. */
static inline void mark_set_as(void *block, uint64_t distance, const struct sample *sample, uint64_t kind) {
    struct mark *mark = (struct mark *)block - 1;
    mark->birth_and_distance = sample->birth >> SAMPLE_BIRTH_SHIFT << 16 | distance;
    mark->size_and_check = sample->size << 16;
    mark->stack_and_slot = (uint64_t)sample->stack << 32 | sample->slot;
    mark->size_and_check |= mark_check(mark);
    mark->mark = kind;
}
static inline void mark_set(void *block, uint64_t distance, const struct sample *sample) {
    mark_set_as(block, distance, sample, (uint64_t)(int64_t)MARK_IMMEDIATE);
}

/* The distance of a marked block from its base, or 0 if the block carries no mark. If it does not, what is read
 * here is memory of its allocator, which the sanitizers would object to. */
__attribute__((no_sanitize("address", "thread"))) static inline uint64_t mark_distance_as(
    const void *block, uint64_t kind) {
    const struct mark *mark = (const struct mark *)block - 1;
    if (mark_begins_page(block) || mark_is_tagged(block) || mark->mark != kind) return 0;
    return (mark->size_and_check & 0xffff) == mark_check(mark) ? mark->birth_and_distance & 0xffff : 0;
}
static inline uint64_t mark_distance(const void *block) {
    return mark_distance_as(block, (uint64_t)(int64_t)MARK_IMMEDIATE);
}

/* The slot in the live table. LIVE_NONE: the block is marked, but not sampled (any more). */
static inline uint32_t mark_slot(const void *block) {
    return (uint32_t)((const struct mark *)block - 1)->stack_and_slot;
}

/* The sample that the mark was made of. Of the birth 48 bits are kept: the latest time not after `now` that has
 * them. */
static inline struct sample mark_sample(const void *block, uint64_t now) {
    const struct mark *mark = (const struct mark *)block - 1;
    uint64_t birth = mark->birth_and_distance >> 16;
    uint64_t age = ((now >> SAMPLE_BIRTH_SHIFT) - birth) & SAMPLE_BIRTH_MASK;
    return sample_of_malloc(mark->size_and_check >> 16,
        ((now >> SAMPLE_BIRTH_SHIFT) - age) << SAMPLE_BIRTH_SHIFT, (uint32_t)(mark->stack_and_slot >> 32),
        mark_slot(block));
}

/* Removes the mark, before the allocator gets the memory back. */
static inline void mark_clear(void *block) {
    ((struct mark *)block - 1)->mark = 0;
}

/* Undoes mark_clear: the other fields are as they were. */
static inline void mark_put_back(void *block) {
    ((struct mark *)block - 1)->mark = (uint64_t)(int64_t)MARK_IMMEDIATE;
}

/* Where a marked block of alignment `alignment` (32 to 2,048) goes in memory that begins at `base`, which has
 * that alignment: `alignment` bytes after the base, or twice as many if it would begin a page there. */
static inline void *mark_place(void *base, size_t alignment) {
    char *block = (char *)base + alignment;
    return mark_begins_page(block) ? block + alignment : block;
}

#endif
#endif
