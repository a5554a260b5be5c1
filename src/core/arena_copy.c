#include "core/arena_copy.h"

#include "platform/pages.h"
#include "platform/system.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u

struct piece {
    char *memory; /* NULL: this piece of the recording is not mapped */
    uint64_t start, size;
};

struct arena_copy {
    struct piece piece[ARENA_PIECES];
};

/* Where a piece of the recording is mapped. Acquire: as in is_mapped (arena.c). */
static struct piece piece_of(const struct recording *recording, uint32_t number) {
    uint64_t first = UINT64_C(1) << recording->first_shift;
    uint64_t start = number ? first << (number - 1) : 0, size = number ? start : first;
    if (start + size > recording->size_max) size = recording->size_max - start;
    uintptr_t base = atomic_load_explicit(&recording->piece[number], memory_order_acquire);
    return (struct piece){base ? (char *)(base + start) : NULL, start, size};
}

void arena_copy_drop(struct arena_copy *copy) {
    for (uint32_t i = 0; i < ARENA_PIECES; i++)
        if (copy->piece[i].memory) pages_give(copy->piece[i].memory, copy->piece[i].size);
    pages_give(copy, sizeof *copy);
}

/* Space that is not handed out yet is all zero, and is not copied. Other threads may write meanwhile; the order of the
 * pieces and of the bytes in them says nothing about what is seen of it. */
struct arena_copy *arena_copy_make(const struct recording *recording) {
    struct arena_copy *copy = pages_take(sizeof *copy);
    uint64_t used = atomic_load_explicit(&recording->header->arena_used, memory_order_acquire);
    for (uint32_t i = 0; copy && i < ARENA_PIECES; i++) {
        struct piece from = piece_of(recording, i);
        if (!from.memory) continue;
        struct piece *to = &copy->piece[i];
        *to = (struct piece){pages_take(from.size), from.start, from.size};
        if (!to->memory) {
            arena_copy_drop(copy);
            return NULL;
        }
        uint64_t filled = used > from.start ? used - from.start : 0;
        memcpy(to->memory, from.memory, filled < from.size ? filled : from.size);
    }
    return copy;
}

/* Puts memory in the place of what is mapped at `to`, in one step. */
static bool move(char *from, uint64_t size, char *to) {
    return system_call(
               SYS_mremap, (uintptr_t)from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (uintptr_t)to, 0) >= 0;
}

/* Maps the file anew, as private memory, at the addresses where it is mapped. */
static void map_privately(const struct recording *recording) {
    long file = system_call(SYS_openat, (uint64_t)AT_FDCWD, (uintptr_t)recording->path,
        O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0, 0, 0);
    for (uint32_t i = 0; file >= 0 && i < ARENA_PIECES; i++) {
        struct piece piece = piece_of(recording, i);
        if (piece.memory)
            system_call(SYS_mmap, (uintptr_t)piece.memory, piece.size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, (uint64_t)file, piece.start);
    }
    if (file >= 0) system_call(SYS_close, (uint64_t)file, 0, 0, 0, 0, 0);
}

/* Maps the page with the header a second time. That is what mremap does to 0 bytes of a shared mapping. */
static struct recording_header *map_header_again(const struct recording *recording) {
    long again = system_call(SYS_mremap, (uintptr_t)recording->header, 0, PAGE, MREMAP_MAYMOVE, 0, 0);
    return again < 0 ? NULL : (struct recording_header *)again;
}

struct recording_header *arena_copy_adopt(struct recording *recording, struct arena_copy *copy) {
    struct recording_header *shared = map_header_again(recording);
    uint64_t end = 0;
    for (uint32_t i = 0; copy && i < ARENA_PIECES; i++) {
        struct piece *from = &copy->piece[i];
        if (!from->memory) continue;
        if (move(from->memory, from->size, piece_of(recording, i).memory)) from->memory = NULL;
        end = from->start + from->size;
    }
    if (copy)
        arena_copy_drop(copy);
    else
        map_privately(recording);
    recording->is_private = true;
    /* A piece of the copy is memory up to its end, also where the file has no space reserved yet. */
    struct recording_header *header = recording->header;
    if (end) atomic_store_explicit(&header->arena_reserved, end, memory_order_relaxed);
    return shared;
}

void arena_copy_forget_header(struct recording_header *header) {
    pages_give(header, PAGE);
}
