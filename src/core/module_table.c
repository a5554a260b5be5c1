#include "core/module_table.h"

#include "core/build_id.h"
#include "core/table.h"
#include "platform/program_headers.h"
#include "platform/safe_read.h"

#define MODULES_MOST (FRAME_MODULE_MASK + 1)
#define INDEX_PLACES 4096
#define PROBE_MAX    16 /* places of the index that a search visits */

/* Finds a module's number by its file. It is private to the process: readers do not need it.
 *
 * A module is noted in three steps: the record is filled; `complete` is set, by a release, for readers in other
 * processes; the number is put into the index, by a release, for this process. Whoever acquires one of the two sees the
 * record filled. */
static struct {
    bool in_use;
    _Atomic uint32_t number_plus_one[INDEX_PLACES]; /* 0 = empty */
} module_index;

void module_table_start(struct recording *recording) {
    if (module_index.in_use) memset(&module_index, 0, sizeof module_index);
    module_index.in_use = true;
    table_start(&recording->header->modules, sizeof(struct module_record), 8);
}

/* Copies memory of a mapped file. The first page of a permanent mapping is read directly, all else by a system call
 * that fails where a load would fault: another thread may be closing the library. */
static bool copy(const struct mapped_code *code, void *target, uint64_t address, uint64_t size) {
    bool plain = code->permanent && address - code->base <= PAGE_SIZE_MIN &&
                 size <= code->base + PAGE_SIZE_MIN - address;
    if (!plain) return safe_read(target, address, size);
    memcpy(target, (const void *)address, size);
    return true;
}

#define SEGMENTS_READ 32 /* files have about a dozen */

/* Reads the file's program headers. Returns how many were read. */
static uint64_t read_segments(
    const struct mapped_code *code, const Elf64_Ehdr *header, Elf64_Phdr segments[SEGMENTS_READ]) {
    uint64_t count = header->e_phnum < SEGMENTS_READ ? header->e_phnum : SEGMENTS_READ;
    if (header->e_phentsize != sizeof *segments) return 0;
    if (header->e_phoff <= PAGE_SIZE_MIN)
        return copy(code, segments, code->base + header->e_phoff, count * sizeof *segments) ? count : 0;
    const struct maps_line *line = code->line;
    struct program_headers_place place = {code->base, line->start, line->end, line->file_offset};
    return program_headers_copy(header, &place, segments, SEGMENTS_READ) ? count : 0;
}

static void read_build_id(struct module_record *module, const struct mapped_code *code) {
    Elf64_Ehdr header;
    Elf64_Phdr segments[SEGMENTS_READ];
    unsigned char notes[1024];
    if (!copy(code, &header, code->base, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return;
    uint64_t count = read_segments(code, &header, segments);
    uint64_t bias = code->base;
    for (uint64_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_offset == 0)
            bias = code->base - segments[i].p_vaddr;
    for (uint64_t i = 0; i < count; i++) {
        if (segments[i].p_type != PT_NOTE) continue;
        uint64_t size = segments[i].p_filesz < sizeof notes ? segments[i].p_filesz : sizeof notes;
        if (!copy(code, notes, bias + segments[i].p_vaddr, size)) continue;
        module->build_id_size = build_id_find(notes, size, segments[i].p_align, module->build_id);
        if (module->build_id_size) return;
    }
}

static bool is_within(const struct maps_line *line, const struct module_record *module) {
    return line->file_offset >= module->file_offset &&
           line->file_offset - module->file_offset + (line->end - line->start) <= module->end - module->start;
}

static bool is_same(struct recording *recording, const struct module_record *module,
    const struct mapped_code *code, bool by_number) {
    const struct maps_line *line = code->line;
    if (module->inode != line->inode || module->by_number != by_number ||
        module->device_major != line->device >> 32 || module->device_minor != (uint32_t)line->device)
        return false;
    /* Fingerprint 0: the file could not be read, because a thread was opening or closing it. It is then taken for the
     * file that was known before. */
    if (code->fingerprint && module->fingerprint != code->fingerprint) return false;
    bool same_place =
        by_number ? is_within(line, module) : module->start == line->start && module->end == line->end;
    return same_place && strcmp(arena_at(recording, module->path), line->path) == 0;
}

static uint64_t hash_of(uint64_t inode, uint64_t start) {
    return (inode ? inode : start >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

static _Atomic uint32_t *index_place(uint64_t hash) {
    return &module_index.number_plus_one[hash % INDEX_PLACES];
}

static struct module_record *record_of(struct recording *recording, uint32_t number) {
    return table_entry(recording, &recording->header->modules, number);
}

static uint32_t append(
    struct recording *recording, const struct mapped_code *code, bool by_number, uint64_t now) {
    const struct maps_line *line = code->line;
    uint64_t path = arena_text(recording, line->path, strlen(line->path));
    uint64_t number = path ? table_append(recording, &recording->header->modules, MODULES_MOST) : UINT64_MAX;
    if (number == UINT64_MAX) {
        /* Relaxed: a counter by which nothing else is ordered. */
        atomic_fetch_add_explicit(&recording->header->drops[DROP_MODULE], 1, memory_order_relaxed);
        return MODULE_NOT_NOTED;
    }
    struct module_record *module = record_of(recording, (uint32_t)number);
    module->start = line->start;
    module->end = line->end;
    module->file_offset = line->file_offset;
    module->path = path;
    module->first_seen = now;
    module->inode = line->inode;
    module->device_major = (uint32_t)(line->device >> 32);
    module->device_minor = (uint32_t)line->device;
    module->fingerprint = code->fingerprint;
    module->by_number = by_number;
    if (code->base) read_build_id(module, code);
    /* Release: a reader that acquires `complete` sees the record filled. */
    atomic_store_explicit(&module->complete, 1, memory_order_release);
    table_number_noted(&recording->modules_noted, number);
    return (uint32_t)number;
}

/* A module that finds no place in the index gets another record when it is opened again. Readers accept that: two
 * records may be about one file. */
static uint32_t find_or_append(
    struct recording *recording, const struct mapped_code *code, bool by_number, uint64_t now) {
    uint64_t hash = hash_of(code->line->inode, code->line->start);
    uint32_t added = MODULE_NOT_NOTED;
    for (uint32_t i = 0; i < PROBE_MAX; i++) {
        _Atomic uint32_t *place = index_place(hash + i);
        /* Acquire, here and where the exchange fails: pairs with the release below, so the record is seen filled. */
        uint32_t found = atomic_load_explicit(place, memory_order_acquire);
        if (!found) {
            if (added == MODULE_NOT_NOTED) added = append(recording, code, by_number, now);
            if (added == MODULE_NOT_NOTED) return added;
            /* Release: pairs with the acquire above in another thread. */
            if (atomic_compare_exchange_strong_explicit(
                    place, &found, added + 1, memory_order_release, memory_order_acquire))
                return added;
        }
        if (!is_same(recording, record_of(recording, found - 1), code, by_number)) continue;
        /* Another thread has noted the same module meanwhile: the record made here is withdrawn. Relaxed: a reader that
         * still finds it complete finds it filled, and has the module twice. */
        if (added != MODULE_NOT_NOTED)
            atomic_store_explicit(&record_of(recording, added)->complete, 0, memory_order_relaxed);
        return found - 1;
    }
    return added == MODULE_NOT_NOTED ? append(recording, code, by_number, now) : added;
}

uint32_t module_table_note(struct recording *recording, const struct mapped_code *code, uint64_t now) {
    const struct maps_line *line = code->line;
    bool by_number =
        !code->permanent && code->base && line->file_offset + (line->end - line->start) <= FRAME_OFFSET_MASK;
    uint32_t number = find_or_append(recording, code, by_number, now);
    return by_number || number == MODULE_NOT_NOTED ? number : MODULE_BY_ADDRESS;
}

/* Relaxed: only called in a forked child, which has one thread yet. */
static void index_add(const struct module_record *module, uint32_t number) {
    uint64_t hash = hash_of(module->inode, module->start);
    for (uint32_t i = 0; i < PROBE_MAX; i++) {
        if (atomic_load_explicit(index_place(hash + i), memory_order_relaxed)) continue;
        atomic_store_explicit(index_place(hash + i), number + 1, memory_order_relaxed);
        return;
    }
}

/* The parent's other threads go on noting modules in the shared file, perhaps in pieces that are not mapped in the
 * child. parent->modules_noted is private memory: in the child it keeps the value it had at the fork, and records
 * below it lie in mapped pieces. */
bool module_table_inherit(struct recording *child, const struct recording *parent) {
    /* Relaxed: nobody changes the child's copy of the count. */
    uint32_t count = atomic_load_explicit(&parent->modules_noted, memory_order_relaxed);
    for (uint32_t number = 0; number < count; number++) {
        const struct module_record *module = table_entry(parent, &parent->header->modules, number);
        if (table_append(child, &child->header->modules, MODULES_MOST) != number) return false;
        /* Acquire: a thread of the parent may be filling this record, which is in shared memory. */
        if (!atomic_load_explicit(&module->complete, memory_order_acquire)) continue;
        struct module_record *copied = record_of(child, number);
        *copied = *module;
        const char *path = arena_at(parent, module->path);
        copied->path = arena_text(child, path, strlen(path));
        if (!copied->path) return false;
        index_add(copied, number);
    }
    atomic_store_explicit(&child->modules_noted, count, memory_order_relaxed);
    return true;
}
