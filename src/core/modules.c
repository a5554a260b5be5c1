#include "core/modules.h"

#include "core/maps.h"
#include "core/table.h"

#include <elf.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define MODULES_MOST 65536
#define STRAYS       64
#define STRAY_PAUSE  1000000000u /* ns before the maps are read again for an address that nothing covered */

static struct {
    _Atomic uint32_t busy; /* 1 while a thread reads the maps */
    uint64_t last_refresh;
    uint64_t stray[STRAYS]; /* pages that a reading of the maps did not cover: garbage from a broken walk */
    uint64_t header_start,
        header_inode; /* the last mapping that began at offset 0 of a file: its ELF header */
    char buffer[8192];
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

/* A copy that fails where a plain read would fault: another thread may be unmapping the library. */
static bool copy_memory(void *to, uint64_t from, size_t size) {
    struct iovec local = {to, size}, remote = {(void *)from, size}; /* NOLINT: an address of this process */
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static void read_build_id(struct module_record *module, uint64_t header_address) {
    Elf64_Ehdr header;
    Elf64_Phdr segments[16];
    unsigned char notes[1024];
    if (!copy_memory(&header, header_address, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return;
    uint64_t count = header.e_phnum < 16 ? header.e_phnum : 16;
    if (header.e_phentsize != sizeof *segments || header.e_phoff > 4096 ||
        !copy_memory(segments, header_address + header.e_phoff, count * sizeof *segments))
        return;
    uint64_t bias = header_address;
    for (uint64_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_offset == 0)
            bias = header_address - segments[i].p_vaddr;
    for (uint64_t i = 0; i < count; i++) {
        if (segments[i].p_type != PT_NOTE) continue;
        uint64_t size = segments[i].p_filesz < sizeof notes ? segments[i].p_filesz : sizeof notes;
        if (!copy_memory(notes, bias + segments[i].p_vaddr, size)) continue;
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
    struct recording *recording, const struct module_record *module, const struct map_line *line) {
    const char *path = recording_at(recording, module->path);
    return module->start == line->start && module->end == line->end && module->inode == line->inode &&
           module->file_offset == line->offset && strncmp(path, line->path, line->path_length) == 0 &&
           path[line->path_length] == '\0';
}

struct visit {
    struct recording *recording;
    uint64_t now;
};

static bool visit(void *context, const struct map_line *line) {
    struct visit *visit = context;
    struct recording *recording = visit->recording;
    struct table *table = &recording->header->modules;
    if (line->offset == 0 && line->inode) {
        state.header_start = line->start;
        state.header_inode = line->inode;
    }
    if (!line->executable) return true;

    struct module_record *known = find(recording, line->start);
    if (known && same_module(recording, known, line)) return true;

    uint64_t number = table_append(recording, table, MODULES_MOST);
    uint64_t path = number == UINT64_MAX ? 0 : arena_text(recording, line->path, line->path_length);
    if (!path) {
        atomic_fetch_add_explicit(&recording->header->drops[DROP_MODULE], 1, memory_order_relaxed);
        return true;
    }
    struct module_record *module = table_entry(recording, table, number);
    module->start = line->start;
    module->end = line->end;
    module->file_offset = line->offset;
    module->path = path;
    module->first_seen = visit->now;
    module->inode = line->inode;
    module->device_major = line->device_major;
    module->device_minor = line->device_minor;
    if (line->inode ? line->inode == state.header_inode : line->path_length == strlen("[vdso]"))
        read_build_id(module, line->inode ? state.header_start : line->start);
    atomic_store_explicit(&module->complete, 1, memory_order_release);
    return true;
}

static void refresh(struct recording *recording, uint64_t address, uint64_t now) {
    uint64_t page = address >> 12, *stray = &state.stray[page % STRAYS];
    if (*stray == page && now - state.last_refresh < STRAY_PAUSE) return;
    if (find(recording, address)) return; /* another thread has just read them */
    state.last_refresh = now;
    struct visit context = {recording, now};
    maps_read(state.buffer, sizeof state.buffer, visit, &context);
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
