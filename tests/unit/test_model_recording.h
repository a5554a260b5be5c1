/* Recordings made by hand, field by field, as the recorder would lay them out. */
#ifndef MALLOSCOPE_TESTS_MODEL_RECORDING_H
#define MALLOSCOPE_TESTS_MODEL_RECORDING_H

#include "core/recording.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef MADE_SIZE
#define MADE_SIZE (256u * 1024)
#endif

/* A recording in memory; `header` is also the base of all offsets. */
struct made {
    struct recording_header *header;
};

static inline void *made_at(struct made *made, uint64_t offset) {
    return (char *)made->header + offset;
}

static inline uint64_t made_space(struct made *made, uint64_t size, uint64_t alignment) {
    uint64_t offset = (made->header->arena_used + alignment - 1) / alignment * alignment;
    if (offset + size > MADE_SIZE) abort();
    made->header->arena_used = offset + size;
    return offset;
}

static inline uint64_t made_text(struct made *made, const char *text) {
    uint64_t offset = made_space(made, strlen(text) + 1, 1);
    strcpy(made_at(made, offset), text);
    return offset;
}

static inline uint64_t made_entry(struct made *made, struct table *table, uint64_t *ret_number) {
    uint64_t number = table->count++, position = number + table->first;
    int segment = __builtin_clzll(table->first) - __builtin_clzll(position);
    uint64_t entries = (uint64_t)table->first << segment;
    if (!table->segment[segment]) table->segment[segment] = made_space(made, entries * table->entry_size, 64);
    if (ret_number) *ret_number = number;
    return table->segment[segment] + (position - entries) * table->entry_size;
}

static inline struct stack_record *made_stack(
    struct made *made, const uint64_t *frames, uint32_t count, uint32_t flags, uint32_t *ret_number) {
    uint64_t number, offset = made_entry(made, &made->header->stacks, &number);
    struct stack_record *record = made_at(made, offset);
    if (count) {
        record->frames = made_space(made, count * sizeof *frames, 8);
        memcpy(made_at(made, record->frames), frames, count * sizeof *frames);
    }
    record->frame_count = count;
    record->flags = flags;
    if (ret_number) *ret_number = (uint32_t)number;
    return record;
}

static inline struct thread_record *made_thread(
    struct made *made, int32_t tid, const char *name, uint64_t bytes) {
    struct thread_record *record = made_at(made, made_entry(made, &made->header->threads, NULL));
    record->state = THREAD_RUNNING;
    record->tid = tid;
    strncpy(record->name, name, sizeof record->name - 1);
    record->bytes = bytes;
    return record;
}

static inline struct module_record *made_module(
    struct made *made, const char *path, uint64_t start, uint64_t end, uint64_t first_seen) {
    struct module_record *record = made_at(made, made_entry(made, &made->header->modules, NULL));
    record->start = start;
    record->end = end;
    record->path = made_text(made, path);
    record->first_seen = first_seen;
    record->complete = 1;
    return record;
}

static inline uint32_t made_name(struct made *made, const char *name) {
    uint64_t number, offset = made_entry(made, &made->header->names, &number);
    ((struct name_record *)made_at(made, offset))->text = name ? made_text(made, name) : 0;
    return (uint32_t)number;
}

static inline uint32_t made_heap(struct made *made, uint32_t name, uint64_t rate) {
    uint64_t number, offset = made_entry(made, &made->header->heaps, &number);
    *(struct heap_record *)made_at(made, offset) =
        (struct heap_record){.name = name, .rate = rate, .complete = 1};
    return (uint32_t)number;
}

/* Puts a live sample into a slot of the table. */
static inline struct live_entry *made_live(
    struct made *made, unsigned slot, uint64_t address, uint64_t size, uint32_t stack) {
    struct live_entry *entry = made_at(made, made->header->live.segment[0]);
    entry += slot;
    *entry = (struct live_entry){
        .key = UINT64_C(7) << 48 | address, .size = size, .birth = 1000 + slot, .stack = stack, .count = 1};
    return entry;
}

/* An empty recording of a process that has long ended, with "[dropped]" as its only stack. */
static inline struct made made_new(uint64_t rate, uint32_t flags) {
    struct made made = {aligned_alloc(4096, MADE_SIZE)};
    struct recording_header *header = made.header;
    memset(header, 0, MADE_SIZE);
    memcpy(header->magic, RECORDING_MAGIC, sizeof header->magic);
    header->version = RECORDING_VERSION;
    header->header_size = sizeof *header;
    header->flags = flags | (rate == 1 ? RECORDING_EXACT : 0);
    header->rate = rate;
    header->pid = 0x3fffffff; /* beyond any limit of process numbers */
    header->arena_used = 4096;
    header->arena_reserved = MADE_SIZE;
    header->last_event = 3000000000u;
    header->threads = (struct table){.entry_size = sizeof(struct thread_record), .first = 4};
    header->stacks = (struct table){.entry_size = sizeof(struct stack_record), .first = 2};
    header->modules = (struct table){.entry_size = sizeof(struct module_record), .first = 4};
    header->names = (struct table){.entry_size = sizeof(struct name_record), .first = 4};
    header->heaps = (struct table){.entry_size = sizeof(struct heap_record), .first = 4};
    header->live = (struct table){.entry_size = sizeof(struct live_entry), .first = 64, .count = 64};
    header->live.segment[0] = made_space(&made, 64 * sizeof(struct live_entry), 64);
    header->timeline = made_space(&made, sizeof(struct timeline), 64);
    ((struct timeline *)made_at(&made, header->timeline))->shift = 30;
    header->executable = made_text(&made, "/usr/bin/example");
    header->command_line = made_text(&made, "example\x1f--name\x1fit's $HOME");
    header->allocator = made_text(&made, "/lib/libc.so.6");
    made_stack(&made, NULL, 0, 0, NULL);
    made_name(&made, NULL);
    made_heap(&made, 0, rate);
    return made;
}

static inline void write_file(const char *path, const void *bytes, size_t size) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || write(file, bytes, size) != (ssize_t)size) {
        perror(path);
        abort();
    }
    close(file);
}

static inline void made_write(struct made *made, const char *path) {
    write_file(path, made->header, MADE_SIZE);
}
static inline void made_free(struct made *made) {
    free(made->header);
}

/* A fresh folder for the files of a test. */
static inline const char *make_folder(void) {
    static char folder[64];
    snprintf(folder, sizeof folder, "/tmp/malloscope-test-XXXXXX");
    if (!mkdtemp(folder)) abort();
    return folder;
}

static inline const char *in_folder(const char *folder, const char *name) {
    static char path[16][256];
    static int next;
    char *result = path[next++ % 16];
    snprintf(result, sizeof path[0], "%s/%s", folder, name);
    return result;
}

static inline void remove_folder(const char *folder) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0) abort();
}

static inline uint64_t real_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

#endif
