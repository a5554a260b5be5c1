#include "core/modules.h"

#include "core/maps.h"
#include "core/memory.h"
#include "core/table.h"

#include <elf.h>
#include <string.h>

#define MODULES_MOST 65536
#define STRAYS       64
#define STRAY_PAUSE  1000000000u /* ns before the maps are read again for an address that nothing covered */

static struct {
    _Atomic uint32_t busy; /* 1 while a thread reads the maps */
    uint64_t last_refresh;
    uint64_t stray[STRAYS]; /* pages that a reading of the maps did not cover: garbage from a broken walk */
    uint64_t header_start,
        header_inode; /* the last mapping that began at offset 0 of a file: its ELF header */
    struct maps_reader maps;
} state;

void modules_start(struct recording *recording) {
    table_start(&recording->header->modules, sizeof(struct module_record), 64);
}

void modules_after_fork(void) {
    atomic_store_explicit(&state.busy, 0, memory_order_relaxed);
}

static struct module_record *find(struct recording *recording, uint64_t address) {
    struct table *table = &recording->header->modules;
    for (uint64_t i = atomic_load_explicit(&table->count, memory_order_acquire); i-- > 0;) {
        struct module_record *module = table_entry(recording, table, i);
        if (address - module->start < module->end - module->start &&
            atomic_load_explicit(&module->complete, memory_order_acquire))
            return module;
    }
    return NULL;
}

static void read_build_id(struct module_record *module, uint64_t header_address) {
    Elf64_Ehdr header;
    Elf64_Phdr segments[16];
    unsigned char notes[1024];
    if (!memory_copy(&header, header_address, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return;
    uint64_t count = header.e_phnum < 16 ? header.e_phnum : 16;
    if (header.e_phentsize != sizeof *segments || header.e_phoff > 4096 ||
        !memory_copy(segments, header_address + header.e_phoff, count * sizeof *segments))
        return;
    uint64_t bias = header_address;
    for (uint64_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_offset == 0)
            bias = header_address - segments[i].p_vaddr;
    for (uint64_t i = 0; i < count; i++) {
        if (segments[i].p_type != PT_NOTE) continue;
        uint64_t size = segments[i].p_filesz < sizeof notes ? segments[i].p_filesz : sizeof notes;
        if (!memory_copy(notes, bias + segments[i].p_vaddr, size)) continue;
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

static bool same_module(
    struct recording *recording, const struct module_record *module, const struct maps_line *line) {
    return module->start == line->start && module->end == line->end && module->inode == line->inode &&
           module->file_offset == line->file_offset &&
           strcmp(recording_at(recording, module->path), line->path) == 0;
}

static void note(struct recording *recording, const struct maps_line *line, uint64_t now) {
    struct table *table = &recording->header->modules;
    struct module_record *known = find(recording, line->start);
    if (known && same_module(recording, known, line)) return;

    uint64_t number = table_append(recording, table, MODULES_MOST);
    uint64_t path = number == UINT64_MAX ? 0 : arena_text(recording, line->path, strlen(line->path));
    if (!path) {
        atomic_fetch_add_explicit(&recording->header->drops[DROP_MODULE], 1, memory_order_relaxed);
        return;
    }
    struct module_record *module = table_entry(recording, table, number);
    module->start = line->start;
    module->end = line->end;
    module->file_offset = line->file_offset;
    module->path = path;
    module->first_seen = now;
    module->inode = line->inode;
    module->device_major = (uint32_t)(line->device >> 32);
    module->device_minor = (uint32_t)line->device;
    if (line->inode && line->inode == state.header_inode)
        read_build_id(module, state.header_start);
    else if (line->vdso)
        read_build_id(module, line->start);
    atomic_store_explicit(&module->complete, 1, memory_order_release);
}

static void read_maps(struct recording *recording, uint64_t now) {
    struct maps_line line;
    if (!maps_open(&state.maps)) return;
    while (maps_next(&state.maps, &line)) {
        if (line.file_offset == 0 && line.inode) {
            state.header_start = line.start;
            state.header_inode = line.inode;
        }
        if (line.executable) note(recording, &line, now);
    }
    maps_close(&state.maps);
}

static void refresh(struct recording *recording, uint64_t address, uint64_t now) {
    uint64_t page = address >> 12, *stray = &state.stray[page % STRAYS];
    if (*stray == page && now - state.last_refresh < STRAY_PAUSE) return;
    if (find(recording, address)) return; /* another thread has just read them */
    state.last_refresh = now;
    read_maps(recording, now);
    if (!find(recording, address)) *stray = page;
}

void modules_cover(struct recording *recording, const uint64_t *frames, uint32_t count, uint64_t now) {
    const struct module_record *last = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (frames[i] >> FRAME_KIND_SHIFT != FRAME_NATIVE) continue;
        uint64_t address = frames[i] - 1;
        if (last && address - last->start < last->end - last->start) continue;
        last = find(recording, address);
        if (last) continue;
        if (atomic_exchange_explicit(&state.busy, 1, memory_order_acquire)) return;
        refresh(recording, address, now);
        atomic_store_explicit(&state.busy, 0, memory_order_release);
    }
}
