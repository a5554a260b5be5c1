/* Which mappings are taken for one module, and which modules a forked child's recording inherits. */
#include "check.h"
#include "core/module_table.h"
#include "core/table.h"
#include "recording_fixture.h"

#include <pthread.h>

extern const char __ehdr_start[]; /* of this program: a file's first page in memory */

static struct maps_line line_of(const char *path, uint64_t inode, uint64_t start, uint64_t size) {
    return (struct maps_line){.start = start,
        .end = start + size,
        .file_offset = 0x1000,
        .inode = inode,
        .device = UINT64_C(8) << 32 | 1,
        .path = path};
}

static uint32_t note(struct recording *recording, struct maps_line line, uint64_t fingerprint) {
    struct mapped_code code = {.line = &line, .base = (uint64_t)__ehdr_start, .fingerprint = fingerprint};
    return module_table_note(recording, &code, 1);
}

static struct module_record *module_of(struct recording *recording, uint32_t number) {
    return table_entry(recording, &recording->header->modules, number);
}

static void a_file_has_one_number_wherever_it_is_opened(struct recording *recording) {
    uint32_t first = note(recording, line_of("/a.so", 7, 0x10000, 0x4000), 5);
    CHECK_TEXT(arena_at(recording, module_of(recording, first)->path), "/a.so");
    CHECK_EQUAL(module_of(recording, first)->by_number, 1);
    CHECK_EQUAL(note(recording, line_of("/a.so", 7, 0x10000, 0x4000), 5), first);
    CHECK_EQUAL(note(recording, line_of("/a.so", 7, 0x90000, 0x4000), 5), first);
    CHECK_EQUAL(module_of(recording, first)->start, 0x10000);
    /* A part of it, after mprotect. */
    struct maps_line part = line_of("/a.so", 7, 0x92000, 0x1000);
    part.file_offset = 0x3000;
    CHECK_EQUAL(note(recording, part, 5), first);
    /* Could not be read. */
    CHECK_EQUAL(note(recording, line_of("/a.so", 7, 0x10000, 0x4000), 0), first);
}

static void another_file_at_the_same_place_has_another(struct recording *recording) {
    uint32_t first = note(recording, line_of("/a.so", 7, 0x10000, 0x4000), 5),
             numbers[5] = {
                 note(recording, line_of("/a.so", 8, 0x10000, 0x4000), 5),
                 note(recording, line_of("/b.so", 7, 0x10000, 0x4000), 5),
                 note(recording, line_of("/a.so", 7, 0x10000, 0x4000), 6),
                 note(recording, line_of("/a.so", 7, 0x10000, 0x5000), 5),
             };
    struct maps_line elsewhere = line_of("/a.so", 7, 0x10000, 0x4000);
    elsewhere.device++;
    numbers[4] = note(recording, elsewhere, 5);
    for (int i = 0; i < 5; i++) {
        CHECK(numbers[i] != first && numbers[i] < MODULE_BY_ADDRESS);
        for (int k = 0; k < i; k++) CHECK(numbers[i] != numbers[k]);
    }
}

static void what_stays_or_is_no_file_is_found_by_address(struct recording *recording) {
    uint64_t before = recording->header->modules.count;
    struct maps_line line = line_of("/libc.so", 9, 0x700000, 0x1000);
    struct mapped_code stays = {.line = &line, .base = (uint64_t)__ehdr_start, .permanent = true};
    for (int i = 0; i < 2; i++) CHECK_EQUAL(module_table_note(recording, &stays, 1), MODULE_BY_ADDRESS);
    CHECK_EQUAL(recording->header->modules.count, before + 1);
    struct maps_line jit = line_of("", 0, 0x800000, 0x1000);
    struct mapped_code code = {.line = &jit};
    for (int i = 0; i < 2; i++) CHECK_EQUAL(module_table_note(recording, &code, 1), MODULE_BY_ADDRESS);
    jit.end += 0x1000;
    CHECK_EQUAL(module_table_note(recording, &code, 1), MODULE_BY_ADDRESS);
    CHECK_EQUAL(recording->header->modules.count, before + 3);
    /* More than a frame word can hold. */
    CHECK_EQUAL(note(recording, line_of("/huge", 10, 0x10000000, UINT64_C(1) << 32), 5), MODULE_BY_ADDRESS);
}

#define FILES   500
#define THREADS 4

static struct recording *shared;
static uint32_t numbers[THREADS][FILES];

static void *note_all(void *argument) {
    uint32_t *mine = argument;
    for (uint64_t i = 0; i < FILES; i++)
        mine[i] = note(shared, line_of("/c.so", 1000 + i * 37, 0x10000, 0x1000), i + 1);
    return NULL;
}

static void threads_agree(struct recording *recording) {
    pthread_t thread[THREADS];
    shared = recording;
    for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, note_all, numbers[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < FILES; i++) {
        CHECK_EQUAL(module_of(recording, numbers[0][i])->fingerprint, i + 1);
        CHECK_EQUAL(module_of(recording, numbers[0][i])->complete, 1);
        for (int k = 1; k < THREADS; k++) CHECK_EQUAL(numbers[k][i], numbers[0][i]);
    }
}

static void a_child_has_the_same_numbers(struct recording *parent) {
    uint32_t known = note(parent, line_of("/a.so", 7, 0x10000, 0x4000), 5);
    uint64_t count = parent->header->modules.count;
    struct recording *child = fixture_recording(1 << 20);
    module_table_start(child);
    CHECK(module_table_inherit(child, parent));
    CHECK_EQUAL(child->header->modules.count, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct module_record *theirs = module_of(parent, i), *ours = module_of(child, i);
        CHECK_EQUAL(ours->complete, theirs->complete);
        if (!theirs->complete) continue;
        CHECK_EQUAL(ours->fingerprint, theirs->fingerprint);
        CHECK_TEXT(arena_at(child, ours->path), (const char *)arena_at(parent, theirs->path));
    }
    CHECK_EQUAL(note(child, line_of("/a.so", 7, 0x90000, 0x4000), 5), known);
    CHECK_EQUAL(note(child, line_of("/new.so", 11, 0x10000, 0x4000), 5), count);
    CHECK_EQUAL(child->header->modules.count, count + 1);
    CHECK_EQUAL(parent->header->modules.count, count);
    fixture_free(child);
}

static void what_finds_no_room_is_counted(void) {
    struct recording *recording = fixture_recording(1 << 20);
    module_table_start(recording);
    while (arena_allocate(recording, 64, 64)) {
    }
    CHECK_EQUAL(note(recording, line_of("/a.so", 7, 0x10000, 0x4000), 5), MODULE_NOT_NOTED);
    CHECK_EQUAL(recording->header->drops[DROP_MODULE], 1);
    fixture_free(recording);
}

int main(void) {
    struct recording *recording = fixture_recording(1 << 20);
    module_table_start(recording);
    a_file_has_one_number_wherever_it_is_opened(recording);
    another_file_at_the_same_place_has_another(recording);
    what_stays_or_is_no_file_is_found_by_address(recording);
    threads_agree(recording);
    a_child_has_the_same_numbers(recording);
    fixture_free(recording);
    what_finds_no_room_is_counted();
    return check_result();
}
