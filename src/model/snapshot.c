#include "model/snapshot.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The strictest alignment of any record, that of struct stack_record. The writer begins each segment at a
 * multiple of it. */
#define RECORD_ALIGNMENT 64
static_assert(_Alignof(struct stack_record) <= RECORD_ALIGNMENT, "a record needs a stricter alignment");

bool snapshot_has(const struct snapshot *snapshot, uint64_t offset, uint64_t length) {
    return offset >= HEADER_SPAN && offset <= snapshot->size && length <= snapshot->size - offset;
}

const char *snapshot_text(const struct snapshot *snapshot, uint64_t offset) {
    if (!snapshot_has(snapshot, offset, 1)) return NULL;
    const char *text = (const char *)snapshot->bytes + offset;
    uint64_t room = snapshot->size - offset;
    return memchr(text, '\0', room < TEXT_ROOM ? room : TEXT_ROOM) ? text : NULL;
}

bool snapshot_part_is_used(const struct snapshot *snapshot, uint64_t part) {
    return snapshot->parts[part / 64] >> (part % 64) & 1;
}

const void *snapshot_next(
    const struct snapshot *snapshot, const struct checked_table *table, struct table_cursor *cursor) {
    while (cursor->segment < table->segment_count) {
        const struct checked_segment *segment = &table->segment[cursor->segment];
        if (cursor->index >= segment->entries) {
            cursor->segment++;
            cursor->index = 0;
            continue;
        }
        uint64_t offset = segment->offset + cursor->index * table->entry_size;
        uint64_t part = offset / SNAPSHOT_PART_SIZE;
        uint64_t last_part = (offset + table->entry_size - 1) / SNAPSHOT_PART_SIZE;
        if (!snapshot_part_is_used(snapshot, part) && !snapshot_part_is_used(snapshot, last_part)) {
            /* Both parts hold nothing: go on with the first entry that reaches into the next part. */
            uint64_t next = (last_part + 1) * SNAPSHOT_PART_SIZE;
            uint64_t skipped = (next - segment->offset) / table->entry_size;
            cursor->index = skipped > cursor->index ? skipped : cursor->index + 1;
            continue;
        }
        cursor->number = segment->number + cursor->index++;
        return snapshot->bytes + offset;
    }
    return NULL;
}

void snapshot_check_table(
    struct checked_table *table, const struct table *description, uint32_t entry_size, uint64_t file_size) {
    *table = (struct checked_table){.entry_size = entry_size};
    uint64_t first = description->first, count = description->count;
    if (count == 0) return;
    if (description->entry_size != entry_size || first == 0 || (first & (first - 1)) != 0) {
        table->damaged = true;
        return;
    }
    table->count = count;

    /* Segments of a sound table do not overlap, so all its entries together fit into the file. This bounds the work
     * for a hostile table whose segments all point to the same place. */
    uint64_t room = file_size / entry_size;
    uint64_t number = 0;
    for (uint32_t k = 0; k < SEGMENTS_MAX && number < table->count; k++) {
        uint64_t wanted = first << k;
        if (wanted > table->count - number) wanted = table->count - number;
        uint64_t offset = description->segment[k];
        uint64_t entries = 0;
        if (offset >= HEADER_SPAN && offset % RECORD_ALIGNMENT == 0 && offset < file_size)
            entries = (file_size - offset) / entry_size;
        if (entries > wanted) entries = wanted;
        if (entries > room) entries = room;
        room -= entries;
        table->lost += wanted - entries;
        table->segment[table->segment_count++] = (struct checked_segment){offset, number, entries};
        number += wanted;
    }
    table->lost += table->count - number;
}

/* Whether the byte counts of all threads are complete, so that none of it is still in the program's memory. */
static bool counts_are_complete(const struct snapshot *snapshot) {
    struct table_cursor cursor = {0};
    for (const struct thread_record *record; (record = snapshot_next(snapshot, &snapshot->threads, &cursor));)
        if (record->state == THREAD_RUNNING && record->interval) return false;
    return true;
}

/* If the count of a thread could not be completed, the recording is not marked as finished. It then reads as that
 * of a killed program, for which up to one sampling interval of each thread is missing. */
void snapshot_make_stand_alone(struct snapshot *snapshot) {
    struct recording_header *header = snapshot_header(snapshot);
    if (snapshot->state == PROCESS_RUNNING) {
        header->flags |= RECORDING_SNAPSHOT;
        if ((header->flags & RECORDING_EXACT) || counts_are_complete(snapshot))
            header->flags |= RECORDING_FINISHED;
        header->last_event = snapshot->elapsed;
    }
    header->active = 0;
    if (!(snapshot->bytes_in_use > snapshot->size)) header->arena_used = snapshot->size;
    header->arena_reserved = snapshot->size;
    header->size_max = snapshot->size;
}

bool snapshot_lost_pages(const struct snapshot *snapshot) {
    return snapshot->pages_lost || (snapshot->in_place.bytes && mapped_file_lost_pages(&snapshot->in_place));
}

void snapshot_free(struct snapshot *snapshot) {
    if (snapshot->in_place.bytes)
        mapped_file_close(&snapshot->in_place);
    else if (snapshot->bytes)
        munmap(snapshot->bytes, snapshot->span);
    free(snapshot->parts);
    *snapshot = (struct snapshot){0};
}
