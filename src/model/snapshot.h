/* A snapshot: a private copy of a recording, taken while its program may be writing it. Of a program that has
 * ended it is the file itself, mapped: a copy would cost more than all that is done with it.
 *
 * Somebody else may still change or cut that file, so what is checked is read once, and then used as it was
 * read. Offsets are those of the file. The copy is whole in these ways:
 *   - every live sample in it was one whole entry at one moment; slots that were being filled are empty;
 *   - of a stack, what was freed was read before what was allocated, so the difference is never negative;
 *   - what a record refers to (frames, text, a live sample's stack) is in the copy, since things are copied
 * in the opposite order to the one in which the recorder makes them;
 *   - the threads of a running program have their byte counts completed (`interval` 0) where its memory could
 * be read.
 */
#ifndef MALLOSCOPE_MODEL_SNAPSHOT_H
#define MALLOSCOPE_MODEL_SNAPSHOT_H

#include "base/problem.h"
#include "core/recording.h"
#include "model/mapped_file.h"
#include "model/model.h"
#include "model/recording_file.h"

/* Part of a table's segment that is in the file. */
struct checked_segment {
    uint64_t offset;
    uint64_t number;  /* of its first entry */
    uint64_t entries; /* all of them readable */
};

/* A table whose entries may be read without further checks. */
struct checked_table {
    struct checked_segment segment[SEGMENTS_MAX];
    uint32_t segment_count;
    uint32_t entry_size;
    uint64_t count; /* entries the table should have */
    uint64_t lost;  /* entries that lie outside the file */
    bool damaged;   /* its description makes no sense; there are no segments */
};

struct snapshot {
    uint8_t *bytes;
    uint64_t size;   /* offsets below this may be read */
    uint64_t *parts; /* a bit for each part of the copy that is not all zero, or in the file no hole */
    uint64_t span;   /* memory mapped for `bytes` */
    struct mapped_file in_place; /* what is mapped there, if it is the file itself */

    struct checked_table threads, stacks, modules, live, names, heaps, codes;

    enum process_state state;
    int writer;            /* number of the running process, or 0 */
    bool writer_is_hidden; /* a process by the recorded number exists but may not be inspected */
    uint64_t last_event;   /* ns from the start */
    uint64_t elapsed;      /* the same, or to now while the program runs */
    uint64_t file_bytes;
    uint64_t recorder_bytes; /* see struct model_process */

    uint64_t bytes_in_use; /* what the header says; more than `size` if the file was cut */
    bool pages_lost;       /* the file was cut while it was being copied */
    bool timeline_torn;    /* its buckets were being merged and never settled */
};

static inline struct recording_header *snapshot_header(const struct snapshot *snapshot) {
    return (struct recording_header *)snapshot->bytes;
}

int snapshot_take(const struct recording_file *file, struct snapshot *ret_snapshot, struct problem *problem);
void snapshot_free(struct snapshot *snapshot);

/* Whether the file was cut while it was being read. */
bool snapshot_lost_pages(const struct snapshot *snapshot);

/* Turns the header into that of a recording nobody writes: of a running program, one that ended now. */
void snapshot_make_stand_alone(struct snapshot *snapshot);

/* Whether `length` bytes at `offset` are there. Overflow-safe; offset 0 means "none" and is not. */
bool snapshot_has(const struct snapshot *snapshot, uint64_t offset, uint64_t length);

/* The zero-terminated text at `offset`, or NULL if there is none, or it does not end within the copy or is
 * longer than any that a recorder writes: paths and command lines have 4,096 bytes. */
#define TEXT_ROOM 16384u
const char *snapshot_text(const struct snapshot *snapshot, uint64_t offset);

/* Visits the entries of a table in order, leaving out long stretches of zeros. Start with a zeroed cursor. */
struct table_cursor {
    uint32_t segment;
    uint64_t index;  /* of the next entry within the segment */
    uint64_t number; /* of the entry returned */
};
const void *snapshot_next(
    const struct snapshot *snapshot, const struct checked_table *table, struct table_cursor *cursor);

/* Reads a table's description. */
void checked_table_read(
    struct checked_table *table, const struct table *description, uint32_t entry_size, uint64_t file_size);

/* The parts of a snapshot that hold anything. */
#define SNAPSHOT_PART_SIZE 65536u
bool snapshot_part_is_used(const struct snapshot *snapshot, uint64_t part);

#endif
