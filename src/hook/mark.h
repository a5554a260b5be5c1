/* The mark that sampled blocks carry, so that free() can tell them from others with one compare.
 *
 *     base                        block
 *      │ ...        check   MARK   │ what the program got
 *      └────────────────────────── ┘
 *        16 or 32 bytes, or the alignment asked for
 *
 * The word before a block belongs to the allocator (glibc keeps the chunk's size there) or to the block
 * before it; neither is likely to be MARK, and `check`, which depends on the block's address, settles it. A
 * marked block never begins a page: free() must not look at the word before such a block, because with some
 * allocators the page before is not mapped. The mark tells all that is needed to free the block, whatever has
 * become of the recording. */
#ifndef MALLOSCOPE_HOOK_MARK_H
#define MALLOSCOPE_HOOK_MARK_H

/* Sign-extended by the processor from 32 bits: no allocator's size. The entry code compares with it. */
#define MARK_IMMEDIATE -0x5a3c1e79
#define PAGE_MASK      0xfff

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MARK_ROOM  16u /* bytes that a mark takes */
#define MARK_SPACE 32u /* what a sampled block of ordinary alignment asks for on top */

struct mark {
    uint64_t check;
    uint64_t mark;
};

static inline bool begins_page(const void *block) {
    return ((uintptr_t)block & PAGE_MASK) == 0;
}

static inline uint64_t mark_check(const void *block, uint64_t distance) {
    return ((uintptr_t)block * UINT64_C(0x9e3779b97f4a7c15) & ~UINT64_C(0xffff)) | distance;
}

#define DISTANCE_EARLY 1u /* in place of a distance: a block of the early heap (real.h), never given back */

/* Marks the block that begins `distance` bytes (16 to 65535) after its base. */
static inline void mark_set(void *block, uint64_t distance) {
    struct mark *mark = (struct mark *)block - 1;
    mark->check = mark_check(block, distance);
    mark->mark = (uint64_t)(int64_t)MARK_IMMEDIATE;
}

/* The distance of a marked block from its base, or 0 if it is not marked. */
static inline uint64_t mark_distance(const void *block) {
    const struct mark *mark = (const struct mark *)block - 1;
    if (begins_page(block) || mark->mark != (uint64_t)(int64_t)MARK_IMMEDIATE) return 0;
    uint64_t distance = mark->check & 0xffff;
    return mark->check == mark_check(block, distance) ? distance : 0;
}

static inline void mark_clear(void *block) {
    ((struct mark *)block - 1)->mark = 0;
}

/* Where a marked block of alignment `alignment` (16 to 2048) goes in a piece of memory that begins at `base`.
 */
static inline void *mark_place(void *base, size_t alignment) {
    char *block = (char *)base + alignment;
    return begins_page(block) ? block + alignment : block;
}

#endif
#endif
