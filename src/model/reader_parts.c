#include "model/reader_parts.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static bool is_zero(const uint8_t *bytes, uint64_t length) {
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

/* Copies bytes, which the caller knows to lie within the snapshot. */
static void keep(
    struct reader_parts *parts, const struct snapshot *snapshot, uint64_t offset, uint64_t length) {
    if (length == 0 || is_zero(snapshot->bytes + offset, length)) return;
    memcpy(parts->bytes + offset, snapshot->bytes + offset, length);
    for (uint64_t page = offset / READER_PARTS_PAGE; page <= (offset + length - 1) / READER_PARTS_PAGE;
         page++)
        parts->pages[page / 64] |= UINT64_C(1) << (page % 64);
}

static void keep_text(struct reader_parts *parts, const struct snapshot *snapshot, uint64_t offset) {
    const char *text = snapshot_text(snapshot, offset);
    if (text) keep(parts, snapshot, offset, strlen(text) + 1);
}

static void keep_entry(struct reader_parts *parts, const struct snapshot *snapshot,
    const struct checked_table *table, const void *entry) {
    keep(parts, snapshot, (uint64_t)((const uint8_t *)entry - snapshot->bytes), table->entry_size);
}

static void keep_stacks(struct reader_parts *parts, const struct snapshot *snapshot) {
    struct table_cursor cursor = {0};
    for (const struct stack_record *record; (record = snapshot_next(snapshot, &snapshot->stacks, &cursor));) {
        uint64_t offset = (uint64_t)((const uint8_t *)record - snapshot->bytes);
        uint64_t length = (uint64_t)record->frame_count * sizeof(uint64_t);
        keep_entry(parts, snapshot, &snapshot->stacks, record);
        ((struct stack_record *)(parts->bytes + offset))->hash = 0;
        if (snapshot_has(snapshot, record->frames, length)) keep(parts, snapshot, record->frames, length);
    }
}

static void keep_modules(struct reader_parts *parts, const struct snapshot *snapshot) {
    struct table_cursor cursor = {0};
    for (const struct module_record *record;
         (record = snapshot_next(snapshot, &snapshot->modules, &cursor));) {
        keep_entry(parts, snapshot, &snapshot->modules, record);
        keep_text(parts, snapshot, record->path);
    }
}

static void keep_threads(struct reader_parts *parts, const struct snapshot *snapshot) {
    struct table_cursor cursor = {0};
    for (const struct thread_record *record; (record = snapshot_next(snapshot, &snapshot->threads, &cursor));)
        keep_entry(parts, snapshot, &snapshot->threads, record);
}

static void keep_names(struct reader_parts *parts, const struct snapshot *snapshot) {
    struct table_cursor cursor = {0};
    for (const struct name_record *record; (record = snapshot_next(snapshot, &snapshot->names, &cursor));) {
        keep_entry(parts, snapshot, &snapshot->names, record);
        keep_text(parts, snapshot, record->text);
    }
}

static void keep_heaps(struct reader_parts *parts, const struct snapshot *snapshot) {
    struct table_cursor cursor = {0};
    for (const struct heap_record *record; (record = snapshot_next(snapshot, &snapshot->heaps, &cursor));)
        keep_entry(parts, snapshot, &snapshot->heaps, record);
}

static void keep_codes(struct reader_parts *parts, const struct snapshot *snapshot) {
    struct table_cursor cursor = {0};
    for (const struct code_record *record; (record = snapshot_next(snapshot, &snapshot->codes, &cursor));) {
        keep_entry(parts, snapshot, &snapshot->codes, record);
        keep_text(parts, snapshot, record->name);
    }
}

static void keep_live(struct reader_parts *parts, const struct snapshot *snapshot) {
    struct table_cursor cursor = {0};
    for (const struct live_entry *entry; (entry = snapshot_next(snapshot, &snapshot->live, &cursor));)
        if (entry->key & LIVE_KEY_MASK) keep_entry(parts, snapshot, &snapshot->live, entry);
}

static void keep_all(struct reader_parts *parts, const struct snapshot *snapshot) {
    const struct recording_header *header = snapshot_header(snapshot);
    keep(parts, snapshot, 0, HEADER_SPAN);
    ((struct recording_header *)parts->bytes)->stack_index = 0;
    if (snapshot_has(snapshot, header->timeline, sizeof(struct timeline)))
        keep(parts, snapshot, header->timeline, sizeof(struct timeline));
    keep_text(parts, snapshot, header->executable);
    keep_text(parts, snapshot, header->command_line);
    keep_text(parts, snapshot, header->allocator);
    keep_stacks(parts, snapshot);
    keep_modules(parts, snapshot);
    keep_threads(parts, snapshot);
    keep_live(parts, snapshot);
    keep_names(parts, snapshot);
    keep_heaps(parts, snapshot);
    keep_codes(parts, snapshot);
}

int reader_parts_make(const struct snapshot *snapshot, struct reader_parts *ret_parts) {
    struct reader_parts parts = {.size = snapshot->size, .span = snapshot->span};
    void *bytes =
        mmap(NULL, parts.span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED) return -ENOMEM;
    parts.bytes = bytes;
    parts.pages = memory_try_allocate((parts.span / READER_PARTS_PAGE / 64 + 1) * sizeof *parts.pages);
    if (!parts.pages) {
        munmap(bytes, parts.span);
        return -ENOMEM;
    }
    keep_all(&parts, snapshot);
    *ret_parts = parts;
    return 0;
}

void reader_parts_free(struct reader_parts *parts) {
    munmap(parts->bytes, parts->span);
    free(parts->pages);
    *parts = (struct reader_parts){0};
}
