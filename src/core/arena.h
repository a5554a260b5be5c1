/* The arena: the file behind a recording, mapped once and extended in place.
 *
 * The whole span that the file may ever take is mapped at the start, most of it beyond the file's end. Space
 * is reserved on disk before anything touches it, so a full disk is a failed request and never a SIGBUS. To
 * extend the file it is opened again by its path: the recorder keeps no descriptor that the program could
 * close or reuse. Handing out space is one compare-and-swap; nothing is given back. */
#ifndef MALLOSCOPE_CORE_ARENA_H
#define MALLOSCOPE_CORE_ARENA_H

#include "core/recording.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define RECORDING_PATH_MAX 4096

/* A recording as its writer holds it. */
struct recording {
    struct recording_header *header; /* also the base that all offsets count from */
    uint64_t span;                   /* bytes of address space mapped */
    dev_t device;
    ino_t inode;
    char path[RECORDING_PATH_MAX]; /* absolute */
};

static inline void *recording_at(const struct recording *recording, uint64_t offset) {
    return (char *)recording->header + offset;
}

/* Creates the file `path` (mode 0600, it must not exist unless `replace`), reserves `reserve` bytes of it and
 * maps up to `size_max`, less where the address space is limited. Only the arena part of the header is
 * filled. Returns 0 or a negative errno; nothing is left behind on failure. */
int arena_create(
    struct recording *recording, const char *path, bool replace, uint64_t reserve, uint64_t size_max);

/* Copies the recording into the new file `path` and maps that in its place, at the same address. The former
 * file is not written to any more. Returns 0 or a negative errno, and then everything is as before. */
int arena_fork(struct recording *recording, const char *path);

/* `size` zeroed bytes, aligned to `alignment` (a power of two); their offset, or 0 when the arena is full. */
uint64_t arena_allocate(struct recording *recording, uint64_t size, uint64_t alignment);

/* A copy of `length` bytes of text, zero-terminated; its offset or 0. */
uint64_t arena_text(struct recording *recording, const char *text, size_t length);

/* Marks the recording finished and gives back what is reserved and not used. The arena does not grow after
 * this. */
void arena_close(struct recording *recording);

#endif
