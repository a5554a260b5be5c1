#include "core/module_table.h"

#include "core/table.h"
#include "platform/safe_read.h"

#include <elf.h>
#include <string.h>

#define MODULES_MOST (FRAME_MODULE_MASK + 1)
#define INDEX_PLACES 4096
#define PROBE_MAX    16 /* places of the index that a search visits */

/* Finds a module's number by its file.
 *
 * A record is filled, then marked complete for readers in other processes, then its number is put into the
 * index: each of the two by a release, and read by an acquire. */
static struct {
    bool in_use;
    _Atomic uint32_t number_plus_one[INDEX_PLACES];
} module_index;

void module_table_start(struct recording *recording) {
    if (module_index.in_use) memset(&module_index, 0, sizeof module_index);
    module_index.in_use = true;
    table_start(&recording->header->modules, sizeof(struct module_record), 64);
}

/* The first page of what stays is read directly. */
static bool copy(const struct mapped_code *code, void *target, uint64_t address, uint64_t size) {
    bool plain = code->permanent && address - code->base <= PAGE_SIZE_MIN &&
                 size <= code->base + PAGE_SIZE_MIN - address;
    if (!plain) return safe_read(target, address, size);
    memcpy(target, (const void *)address, size);
    return true;
}

static void read_build_id(struct module_record *module, const struct mapped_code *code) {
    Elf64_Ehdr header;
    Elf64_Phdr segments[16];
    unsigned char notes[1024];
    if (!copy(code, &header, code->base, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return;
    uint64_t count = header.e_phnum < 16 ? header.e_phnum : 16;
    if (header.e_phentsize != sizeof *segments || header.e_phoff > 4096 ||
        !copy(code, segments, code->base + header.e_phoff, count * sizeof *segments))
        return;
    uint64_t bias = code->base;
    for (uint64_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_offset == 0)
            bias = code->base - segments[i].p_vaddr;
    for (uint64_t i = 0; i < count; i++) {
        if (segments[i].p_type != PT_NOTE) continue;
        uint64_t size = segments[i].p_filesz < sizeof notes ? segments[i].p_filesz : sizeof notes;
        if (!copy(code, notes, bias + segments[i].p_vaddr, size)) continue;
        for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= size;) {
            Elf64_Nhdr note;
            memcpy(&note, notes + at, sizeof note);
            uint64_t name = at + sizeof note, data = name + ((note.n_namesz + 3) & ~UINT64_C(3));
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && data + note.n_descsz <= size &&
                memcmp(notes + name, "GNU", 4) == 0 && note.n_descsz <= sizeof module->build_id) {
                memcpy(module->build_id, notes + data, note.n_descsz);
                module->build_id_size = (uint8_t)note.n_descsz;
                return;
            }
            at = data + ((note.n_descsz + 3) & ~UINT64_C(3));
        }
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
    /* What could not be read, because it was just being opened or closed, is taken for what it was. */
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
        /* Relaxed: a sum that nothing is ordered by. */
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
    /* Release: a reader that sees the mark sees the record. */
    atomic_store_explicit(&module->complete, 1, memory_order_release);
    table_number_noted(&recording->modules_noted, number);
    return (uint32_t)number;
}

/* One that finds no place in the index is noted again when it is opened again, which does no harm. */
static uint32_t find_or_append(
    struct recording *recording, const struct mapped_code *code, bool by_number, uint64_t now) {
    uint64_t hash = hash_of(code->line->inode, code->line->start);
    uint32_t added = MODULE_NOT_NOTED;
    for (uint32_t i = 0; i < PROBE_MAX; i++) {
        _Atomic uint32_t *place = index_place(hash + i);
        /* Acquire, here and where the exchange fails: the record that is named is seen filled. */
        uint32_t found = atomic_load_explicit(place, memory_order_acquire);
        if (!found) {
            if (added == MODULE_NOT_NOTED) added = append(recording, code, by_number, now);
            if (added == MODULE_NOT_NOTED) return added;
            /* Release: who finds the number finds the record filled. */
            if (atomic_compare_exchange_strong_explicit(
                    place, &found, added + 1, memory_order_release, memory_order_acquire))
                return added;
        }
        if (!is_same(recording, record_of(recording, found - 1), code, by_number)) continue;
        /* Another thread was faster: one of the two is enough. Relaxed: a reader that still finds ours
         * complete finds it filled, and has it twice. */
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

/* The thread is alone in its process: relaxed. */
static void index_add(const struct module_record *module, uint32_t number) {
    uint64_t hash = hash_of(module->inode, module->start);
    for (uint32_t i = 0; i < PROBE_MAX; i++) {
        if (atomic_load_explicit(index_place(hash + i), memory_order_relaxed)) continue;
        atomic_store_explicit(index_place(hash + i), number + 1, memory_order_relaxed);
        return;
    }
}

/* What the parent's other threads note after the fork may lie in memory that the child does not have; the
 * count of what was noted is private, and as it was at the fork. */
bool module_table_inherit(struct recording *child, const struct recording *parent) {
    /* Relaxed: nobody changes it any more. */
    uint32_t count = atomic_load_explicit(&parent->modules_noted, memory_order_relaxed);
    for (uint32_t number = 0; number < count; number++) {
        const struct module_record *module = table_entry(parent, &parent->header->modules, number);
        if (table_append(child, &child->header->modules, MODULES_MOST) != number) return false;
        /* Acquire: the parent's other threads go on filling records, in memory that is shared. */
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
