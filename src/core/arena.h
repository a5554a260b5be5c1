/* The arena: the file behind a recording, mapped in pieces as it grows.
 *
 *     file     0        first        2 first                 4 first
 *              ├─ piece 0 ─┼─ piece 1 ─┼─────── piece 2 ───────┼──────── ...
 *
 * Each piece is as large as all before it together, is mapped when it is first needed, and stays where it is:
 * the address space taken is at most twice what is used, which matters to programs that limit theirs. Nothing
 * that is handed out lies across two pieces.
 *
 * Space is reserved on disk before anything touches it, so a full disk is a failed request and never a
 * SIGBUS. To extend the file it is opened again by its path: the recorder keeps no descriptor that the
 * program could close or reuse. Handing out space is one compare-and-swap; nothing is given back. */
#ifndef MALLOSCOPE_CORE_ARENA_H
#define MALLOSCOPE_CORE_ARENA_H

#include "core/recording.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define RECORDING_PATH_MAX 4096

#define ARENA_PIECES 40

/* Where a table's segments lie in this process (table.h). 0 = not asked for yet. */
struct table_map {
    _Atomic(uintptr_t) origin[SEGMENTS_MAX];
};

/* A recording as its writer holds it. */
struct recording {
    struct recording_header *header;
    struct timeline *timeline; /* where header->timeline lies */
    struct table_map stacks, live, heaps;
    _Atomic uint32_t modules_noted, names_noted, heaps_noted,
        code_objects_noted; /* all of their numbers that are in use are below */
    uint32_t first_shift;   /* log2 of the first piece's size */
    _Atomic(uintptr_t)
        piece[ARENA_PIECES]; /* address of offset 0 if piece k's mapping reached back to it; 0 = not mapped */
    _Atomic int32_t retry_in; /* requests until growth is tried again after a failure that may pass */
    dev_t device;
    ino_t inode;
    char path[RECORDING_PATH_MAX]; /* absolute */
};

static inline uint32_t arena_piece(const struct recording *recording, uint64_t offset) {
    return 63 - (uint32_t)__builtin_clzll((offset >> recording->first_shift) * 2 + 1);
}

/* The address of something that arena_allocate handed out. */
static inline void *arena_at(const struct recording *recording, uint64_t offset) {
    /* Relaxed: who has the offset has it from arena_allocate, which saw the piece mapped, or by an acquire
     * from who has. */
    const _Atomic(uintptr_t) *piece = &recording->piece[arena_piece(recording, offset)];
    return (void *)(atomic_load_explicit(piece, memory_order_relaxed) + offset);
}

/* Creates the file `path` (mode 0600, it must not exist unless `replace`) and reserves and maps its first
 * `first` bytes, a power of two. It never grows beyond `size_max`. Only the arena part of the header is
 * filled. Returns 0 or a negative errno; nothing is left behind on failure. */
int arena_create(
    struct recording *recording, const char *path, bool replace, uint64_t first, uint64_t size_max);

/* Sees to it that the next `size` bytes can be had without a system call, as far as there is space. */
void arena_reserve(struct recording *recording, uint64_t size);

/* The writer lets go of it. The file stays. */
void arena_unmap(struct recording *recording);

/* The same, and the file goes: it was never of use to anybody. */
void arena_discard(struct recording *recording);

/* `size` zeroed bytes, aligned to `alignment` (a power of two); their offset, or 0 when the arena is full. */
uint64_t arena_allocate(struct recording *recording, uint64_t size, uint64_t alignment);

/* A copy of `length` bytes of text, zero-terminated; its offset or 0. */
uint64_t arena_text(struct recording *recording, const char *text, size_t length);

/* Marks the recording finished and gives back what is reserved and not used. The arena does not grow after
 * this. */
void arena_close(struct recording *recording);

#endif
