/* The arena: the file behind a recording, mapped in pieces as it grows.
 *
 *     offset   0         first       2 first                 4 first
 *              ├─ piece 0 ─┼─ piece 1 ─┼─────── piece 2 ───────┼──────── ...
 *
 * Each piece is as large as all pieces before it together. It is mapped when it is first needed, and stays at its
 * address. So the address space taken is at most twice what is used, which matters to programs that limit theirs.
 * An allocation never lies across two pieces.
 *
 * Space is reserved on disk before it is touched, so that a full disk is a failed request and never a SIGBUS. It is
 * reserved in steps that grow with the file, so that a small recording takes little. To extend the file, the
 * recorder opens it again by its path: it keeps no descriptor that the program could close or reuse.
 *
 * Where the program is about to lose access to the file, the file is made longer ahead, as a hole, and mapped
 * (arena_reserve_sparse). Then a step needs no descriptor: the kernel is asked to back the mapped pages with space.
 *
 * Space is handed out by one compare and swap, and given back only at the end (arena_close). */
#ifndef MALLOSCOPE_CORE_ARENA_H
#define MALLOSCOPE_CORE_ARENA_H

#include "core/recording.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define RECORDING_PATH_MAX 4096

#define ARENA_PIECES 40

/* Where a table's segments lie in this process (table_mapped in table.h); 0 = not looked up yet. */
struct table_map {
    _Atomic(uintptr_t) origin[SEGMENTS_MAX];
};

/* A recording, as the process that writes it holds it. */
struct recording {
    struct recording_header *header;
    struct timeline *timeline; /* the address of header->timeline */
    struct table_map stacks, live, heaps;
    /* All records that frames and stacks may name have numbers below these. A forked child inherits records up to
     * them. */
    _Atomic uint32_t modules_noted, names_noted, heaps_noted, code_objects_noted;
    uint32_t first_shift;   /* log2 of the first piece's size */
    bool is_private;        /* a copy of the parent's memory: it has no file (arena_copy.h) */
    uint64_t size_max;      /* of the header: no piece is mapped beyond it */
    _Atomic uint64_t ahead; /* the file was made so long ahead, and is mapped up to there; 0: it was not */
    _Atomic(uintptr_t)
        piece[ARENA_PIECES]; /* (address of piece k) - (its offset in the file); 0 = not mapped */
    _Atomic int32_t
        retry_in; /* requests that are refused before growth is tried again after a passing failure */
    dev_t device;
    ino_t inode;
    char path[RECORDING_PATH_MAX]; /* absolute */
};

/* The piece that an offset lies in. */
static inline uint32_t arena_piece(const struct recording *recording, uint64_t offset) {
    return 63 - (uint32_t)__builtin_clzll((offset >> recording->first_shift) * 2 + 1);
}

/* The address of an offset that arena_allocate handed out. */
static inline void *arena_at(const struct recording *recording, uint64_t offset) {
    /* Relaxed: the calling thread has the offset from arena_allocate, which saw the piece mapped, or it acquired
     * the offset from a thread that has. */
    const _Atomic(uintptr_t) *piece = &recording->piece[arena_piece(recording, offset)];
    return (void *)(atomic_load_explicit(piece, memory_order_relaxed) + offset);
}

/* Creates the file `path` (mode 0600; it must not exist unless `replace`), maps its first `first` bytes, a power of
 * two, and reserves some of them. The file never grows beyond `size_max`. Of the header only size_max and arena_*
 * are filled. Returns 0 or a negative errno; on failure no file is left behind. */
int arena_create(
    struct recording *recording, const char *path, bool replace, uint64_t first, uint64_t size_max);

/* Reserves and maps the next `size` bytes, so that they can be allocated without a system call. Does less if there
 * is not so much space. */
void arena_reserve(struct recording *recording, uint64_t size);

/* The bytes that may be in use at most, as far as is known: size_max, or less if the file cannot grow any more. */
uint64_t arena_limit(const struct recording *recording);

/* Makes the file longer by a hole of `size` bytes and maps it, so that they can be allocated without the file being
 * opened again. The hole takes no space on disk. Where the kernel is too old for that (before Linux 5.14), this is
 * arena_reserve. */
void arena_reserve_sparse(struct recording *recording, uint64_t size);

/* Unmaps the recording. The file stays. */
void arena_unmap(struct recording *recording);

/* Marks the recording finished and removes the file. It stays mapped. */
void arena_remove(struct recording *recording);

/* Unmaps the recording and removes the file. */
void arena_discard(struct recording *recording);

/* The offset of `size` zeroed bytes, aligned to `alignment` (a power of two); 0 if the arena is full. */
uint64_t arena_allocate(struct recording *recording, uint64_t size, uint64_t alignment);

/* The offset of a zero-terminated copy of `length` bytes of text; 0 if the arena is full. */
uint64_t arena_text(struct recording *recording, const char *text, size_t length);

/* Marks the recording finished and gives space back that is reserved but not used. The arena does not grow after
 * this, unless arena_reopen is called. */
void arena_close(struct recording *recording);

/* Takes arena_close back: the mark goes, and what was reserved is reserved again, if the disk has the space. Only for
 * a process with one thread. `reserved`: arena_reserved from before. */
void arena_reopen(struct recording *recording, uint64_t reserved);

#endif
