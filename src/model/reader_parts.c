#include "model/reader_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static bool is_zero(const uint8_t *bytes, uint64_t length) {
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

/* Keeps bytes that are known to lie in the snapshot. */
static void keep(struct essence *essence, const struct snapshot *snapshot, uint64_t offset, uint64_t length) {
    if (length == 0 || is_zero(snapshot->bytes + offset, length)) return;
    memcpy(essence->bytes + offset, snapshot->bytes + offset, length);
    for (uint64_t page = offset / ESSENCE_PAGE; page <= (offset + length - 1) / ESSENCE_PAGE; page++)
        essence->pages[page / 64] |= UINT64_C(1) << (page % 64);
}

static void keep_text(struct essence *essence, const struct snapshot *snapshot, uint64_t offset) {
    const char *text = snapshot_text(snapshot, offset);
    if (text) keep(essence, snapshot, offset, strlen(text) + 1);
}

static void keep_entry(struct essence *essence, const struct snapshot *snapshot,
    const struct checked_table *table, const void *entry) {
    keep(essence, snapshot, (uint64_t)((const uint8_t *)entry - snapshot->bytes), table->entry_size);
}

static void keep_stacks(struct essence *essence, const struct snapshot *snapshot) {
    struct table_cursor cursor = {0};
    for (const struct stack_record *record; (record = snapshot_next(snapshot, &snapshot->stacks, &cursor));) {
        uint64_t offset = (uint64_t)((const uint8_t *)record - snapshot->bytes);
        uint64_t length = (uint64_t)record->frame_count * sizeof(uint64_t);
        keep_entry(essence, snapshot, &snapshot->stacks, record);
        ((struct stack_record *)(essence->bytes + offset))->hash = 0;
        if (snapshot_has(snapshot, record->frames, length)) keep(essence, snapshot, record->frames, length);
    }
}

static void keep_modules(struct essence *essence, const struct snapshot *snapshot) {
    struct table_cursor cursor = {0};
    for (const struct module_record *record;
         (record = snapshot_next(snapshot, &snapshot->modules, &cursor));) {
        keep_entry(essence, snapshot, &snapshot->modules, record);
        keep_text(essence, snapshot, record->path);
    }
}

static void keep_threads(struct essence *essence, const struct snapshot *snapshot) {
    struct table_cursor cursor = {0};
    for (const struct thread_record *record; (record = snapshot_next(snapshot, &snapshot->threads, &cursor));)
        keep_entry(essence, snapshot, &snapshot->threads, record);
}

static void keep_names(struct essence *essence, const struct snapshot *snapshot) {
    struct table_cursor cursor = {0};
    for (const struct name_record *record; (record = snapshot_next(snapshot, &snapshot->names, &cursor));) {
        keep_entry(essence, snapshot, &snapshot->names, record);
        keep_text(essence, snapshot, record->text);
    }
}

static void keep_heaps(struct essence *essence, const struct snapshot *snapshot) {
    struct table_cursor cursor = {0};
    for (const struct heap_record *record; (record = snapshot_next(snapshot, &snapshot->heaps, &cursor));)
        keep_entry(essence, snapshot, &snapshot->heaps, record);
}

static void keep_codes(struct essence *essence, const struct snapshot *snapshot) {
    struct table_cursor cursor = {0};
    for (const struct code_record *record; (record = snapshot_next(snapshot, &snapshot->codes, &cursor));) {
        keep_entry(essence, snapshot, &snapshot->codes, record);
        keep_text(essence, snapshot, record->name);
    }
}

static void keep_live(struct essence *essence, const struct snapshot *snapshot) {
    struct table_cursor cursor = {0};
    for (const struct live_entry *entry; (entry = snapshot_next(snapshot, &snapshot->live, &cursor));)
        if (entry->key & LIVE_KEY_MASK) keep_entry(essence, snapshot, &snapshot->live, entry);
}

static void keep_all(struct essence *essence, const struct snapshot *snapshot) {
    const struct recording_header *header = snapshot_header(snapshot);
    keep(essence, snapshot, 0, HEADER_SPAN);
    ((struct recording_header *)essence->bytes)->stack_index = 0;
    if (snapshot_has(snapshot, header->timeline, sizeof(struct timeline)))
        keep(essence, snapshot, header->timeline, sizeof(struct timeline));
    keep_text(essence, snapshot, header->executable);
    keep_text(essence, snapshot, header->command_line);
    keep_text(essence, snapshot, header->allocator);
    keep_stacks(essence, snapshot);
    keep_modules(essence, snapshot);
    keep_threads(essence, snapshot);
    keep_live(essence, snapshot);
    keep_names(essence, snapshot);
    keep_heaps(essence, snapshot);
    keep_codes(essence, snapshot);
}

int reader_parts_make(const struct snapshot *snapshot, struct essence *ret_essence) {
    struct essence essence = {.size = snapshot->size, .span = snapshot->span};
    void *bytes =
        mmap(NULL, essence.span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED) return -ENOMEM;
    essence.bytes = bytes;
    essence.pages = calloc(essence.span / ESSENCE_PAGE / 64 + 1, sizeof *essence.pages);
    if (!essence.pages) {
        munmap(bytes, essence.span);
        return -ENOMEM;
    }
    keep_all(&essence, snapshot);
    *ret_essence = essence;
    return 0;
}

void reader_parts_free(struct essence *essence) {
    munmap(essence->bytes, essence->span);
    free(essence->pages);
    *essence = (struct essence){0};
}
