/* A snapshot: a recording at one moment, although its program may be writing it.
 *
 * The recording of a running program is copied. That of a program that has ended is the file itself, mapped
 * privately: a copy would cost more than all that is done with it. Somebody may still write to that file or cut it.
 * Readers therefore read each word that they check once, and go on with the value that they checked.
 *
 * Offsets into a snapshot are those into the file. A copy is consistent in these ways:
 *   - A live entry in the copy was one whole entry at some moment. A slot that was being filled is empty in the copy.
 *   - freed ≤ allocated, for each stack: the counts of allocations are copied after those of frees.
 *   - What a record refers to is in the copy: the frames of a stack, texts, the stack of a live entry. The recorder
 *     makes things in one order, and they are copied in the reverse order (core/recording_copy.h).
 *   - The threads of a running program have complete byte counts (`interval` 0), if the program's memory could be read.
 *
 * Nothing in a recording is trusted. The tables below were checked: their entries may be read. All other offsets
 * are checked by snapshot_has and snapshot_text. */
#ifndef MALLOSCOPE_MODEL_SNAPSHOT_H
#define MALLOSCOPE_MODEL_SNAPSHOT_H

#include "base/problem.h"
#include "core/recording.h"
#include "model/mapped_file.h"
#include "model/model.h"
#include "model/recording_file.h"

/* The part of a table's segment that is in the file. */
struct checked_segment {
    uint64_t offset;
    uint64_t number;  /* of its first entry in the table */
    uint64_t entries; /* how many of its entries can be read */
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
    uint64_t size;               /* offsets below this may be read */
    uint64_t span;               /* bytes of memory that are mapped at `bytes` */
    struct mapped_file in_place; /* the mapped file, if that is what `bytes` points to; else zeroed */
    uint64_t *parts; /* a bit for each part that may hold anything: of a copy, the parts that are not all
                                    zero; of the file, those that are not in a hole */

    struct checked_table threads, stacks, modules, live, names, heaps, codes;

    enum process_state state;
    int writer;            /* number of the running process that writes the file, or 0 */
    bool writer_is_hidden; /* a process with the recorded number exists, but may not be inspected */
    uint64_t last_event;   /* ns since the start */
    uint64_t elapsed;      /* ns since the start: to now if the program runs, else to the last event */
    uint64_t file_bytes;
    uint64_t recorder_bytes; /* see struct model_process */
    uint32_t owner;          /* number of the user who owns the file, or the archive that it came out of */

    uint64_t bytes_in_use; /* as the header says; more than `size` if the file was cut */
    bool pages_lost;       /* the file was cut while it was being copied */
    bool timeline_torn;    /* the timeline's buckets were being merged, and the copy is useless */
};

static inline struct recording_header *snapshot_header(const struct snapshot *snapshot) {
    return (struct recording_header *)snapshot->bytes;
}

/* Takes a snapshot (snapshot_take.c). Fails if the file is no recording that this version reads, or cannot be
 * mapped. */
int snapshot_take(const struct recording_file *file, struct snapshot *ret_snapshot, struct problem *problem);
void snapshot_free(struct snapshot *snapshot);

/* Whether the file was cut while it was being read, so that pages of the snapshot read as zeros. */
bool snapshot_lost_pages(const struct snapshot *snapshot);

/* Changes the header so that the snapshot can be written as a recording of its own. A running program reads as one
 * that ended at this moment. */
void snapshot_make_stand_alone(struct snapshot *snapshot);

/* Whether `length` bytes at `offset` can be read. Cannot overflow. Offset 0 means "none" and is refused. */
bool snapshot_has(const struct snapshot *snapshot, uint64_t offset, uint64_t length);

/* The zero-terminated text at `offset`. NULL if it is outside of the snapshot, does not end in it, or is longer
 * than TEXT_ROOM; no recorder writes more than 4,096 bytes, which is the limit for paths and command lines. */
#define TEXT_ROOM 16384u
const char *snapshot_text(const struct snapshot *snapshot, uint64_t offset);

/* Returns the entries of a table one after the other, then NULL. Leaves out entries in parts that hold nothing. The
 * cursor starts zeroed. */
struct table_cursor {
    uint32_t segment;
    uint64_t index;  /* of the next entry within the segment */
    uint64_t number; /* of the entry that was returned last, in the table */
};
const void *snapshot_next(
    const struct snapshot *snapshot, const struct checked_table *table, struct table_cursor *cursor);

/* Checks the description of a table in a header: fills in what of the table lies in the first `file_size` bytes. */
void snapshot_check_table(
    struct checked_table *table, const struct table *description, uint32_t entry_size, uint64_t file_size);

/* Whether a part may hold anything. */
#define SNAPSHOT_PART_SIZE 65536u
bool snapshot_part_is_used(const struct snapshot *snapshot, uint64_t part);

#endif
