#include "attach/remote/module_bytes.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attach/remote/frame_index.h"
#include "base/open_regular.h"
#include "core/build_id.h"
#include "platform/safe_read.h"

#define PROGRAM_HEADERS_MAX 128                 /* files have about a dozen */
#define NOTES_SIZE_MAX      8192                /* bytes that are read of one PT_NOTE segment */
#define PART_SIZE_MAX       (UINT64_C(4) << 30) /* the offsets in .eh_frame_hdr have 32 bits */

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

/* ---- Reading ---- */

bool module_bytes_read_at(int descriptor, void *target, uint64_t size, uint64_t offset) {
    return descriptor >= 0 && offset <= INT64_MAX &&
           pread(descriptor, target, size, (off_t)offset) == (ssize_t)size;
}

/* The `reader` of struct mapping: how rule_evaluate reads this module. */
static bool read_bytes(const struct mapping *mapping, void *target, uint64_t address, uint64_t size) {
    const struct module_bytes *bytes = (const struct module_bytes *)mapping;
    for (unsigned i = 0; i < PARTS; i++) {
        const struct module_bytes_part *part = &bytes->part[i];
        uint64_t inside = address - part->low;
        if (inside >= part->high - part->low || size > part->high - part->low - inside) continue;
        if (!part->owned) return safe_read(target, (uint64_t)part->bytes + inside, size);
        memcpy(target, part->bytes + inside, size);
        return true;
    }
    return module_bytes_read_at(bytes->process->memory, target, size, address);
}

/* ---- Parts ---- */

static uint64_t page_down(uint64_t value) {
    return value & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

static void part_map(struct module_bytes_part *part, int file, uint64_t offset, uint64_t low, uint64_t size) {
    uint64_t before = offset - page_down(offset);
    if (file < 0 || size == 0 || size > PART_SIZE_MAX || low + size < low || offset > INT64_MAX - size)
        return;
    void *pages = mmap(NULL, before + size, PROT_READ, MAP_PRIVATE, file, (off_t)(offset - before));
    if (pages == MAP_FAILED) return; /* read_bytes then reads the process's memory instead */
    *part = (struct module_bytes_part){.low = low,
        .high = low + size,
        .bytes = (const uint8_t *)pages + before,
        .pages = pages,
        .pages_size = before + size};
}

uint8_t *module_bytes_own_part(struct module_bytes_part *part, uint64_t low, uint64_t size) {
    if (size == 0 || low + size < low) return NULL;
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return NULL;
    *part = (struct module_bytes_part){
        .low = low, .high = low + size, .bytes = pages, .pages = pages, .pages_size = size, .owned = true};
    return pages;
}

void module_bytes_close(struct module_bytes *bytes) {
    for (unsigned i = 0; i < PARTS; i++) {
        if (bytes->part[i].pages) munmap(bytes->part[i].pages, bytes->part[i].pages_size);
        bytes->part[i] = (struct module_bytes_part){0};
    }
}

/* ---- The file ---- */

/* Opens a regular file; with `expected`, only if it is the file of that line of the maps. */
static int open_mapped(int folder, const char *path, const struct maps_line *expected) {
    struct stat status;
    int found = openat(folder, path, O_PATH | O_CLOEXEC);
    if (found < 0) return -1;
    bool same = fstat(found, &status) == 0;
    if (expected)
        same = same && status.st_ino == expected->inode && major(status.st_dev) == expected->device >> 32 &&
               minor(status.st_dev) == (uint32_t)expected->device;
    if (same) return open_regular_found(found);
    close(found);
    return -1;
}

/* The file that is mapped. By /proc/PID/map_files if possible, which takes a capability and finds the file whatever has
 * become of its name. Otherwise one of these, if it is the file that is mapped: the executable by /proc/PID/exe, or the
 * path from the maps, in the process's view of the file system or in ours. */
static int file_open(const struct remote_process *process, const struct maps_line *line) {
    char path[PATH_MAX + 8];
    if (line->inode == 0) return -1;
    snprintf(path, sizeof path, "map_files/%" PRIx64 "-%" PRIx64, line->start, line->end);
    int file = open_mapped(process->folder, path, NULL);
    if (file < 0) file = open_mapped(process->folder, "exe", line);
    if (file >= 0 || line->path[0] != '/') return file;
    if (snprintf(path, sizeof path, "root%s", line->path) < (int)sizeof path)
        file = open_mapped(process->folder, path, line);
    return file >= 0 ? file : open_mapped(process->folder, line->path, line);
}

/* ---- ELF headers ---- */

/* Read by hand and not with libelf, which takes as much memory as a damaged file asks for. */
struct headers {
    int file;      /* -1 = the process's memory is read */
    uint64_t bias; /* address in the process = bias + address in the file's headers */
    uint64_t end;  /* address in the process at which the last segment ends */
    Elf64_Ehdr elf;
    unsigned count;
    Elf64_Phdr segment[PROGRAM_HEADERS_MAX];
};

static bool headers_read_at(const struct headers *headers, const struct module_bytes *bytes, void *target,
    uint64_t size, uint64_t offset) {
    if (headers->file >= 0) return module_bytes_read_at(headers->file, target, size, offset);
    return bytes->mapping.base &&
           module_bytes_read_at(bytes->process->memory, target, size, bytes->mapping.base + offset);
}

/* Finds the code segment that the mapping shows. It tells the bias. */
static bool headers_find_bias(struct headers *headers, const struct mapping *mapping) {
    const Elf64_Phdr *code = NULL;
    for (const Elf64_Phdr *segment = headers->segment; segment < headers->segment + headers->count;
         segment++) {
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X)) continue;
        if (page_down(segment->p_offset) > mapping->file_offset) continue;
        if (mapping->file_offset >= segment->p_offset &&
            mapping->file_offset - segment->p_offset >= segment->p_filesz)
            continue;
        if (!code || segment->p_offset > code->p_offset) code = segment;
    }
    if (!code) return false;
    headers->bias = mapping->start - mapping->file_offset + code->p_offset - code->p_vaddr;
    for (const Elf64_Phdr *segment = headers->segment; segment < headers->segment + headers->count;
         segment++) {
        uint64_t end = headers->bias + segment->p_vaddr + segment->p_memsz;
        if (segment->p_type == PT_LOAD && end > headers->end) headers->end = end;
    }
    return true;
}

bool module_bytes_machine_fits(const Elf64_Ehdr *elf) {
    return memcmp(elf->e_ident, ELFMAG, SELFMAG) == 0 && elf->e_ident[EI_CLASS] == ELFCLASS64 &&
           elf->e_ident[EI_DATA] == ELFDATA2LSB && elf->e_machine == MACHINE;
}

static bool headers_read(struct headers *headers, const struct module_bytes *bytes) {
    Elf64_Ehdr *elf = &headers->elf;
    if (!headers_read_at(headers, bytes, elf, sizeof *elf, 0)) return false;
    if (!module_bytes_machine_fits(elf)) return false;
    if (elf->e_phentsize != sizeof(Elf64_Phdr) || elf->e_phnum > PROGRAM_HEADERS_MAX) return false;
    headers->count = elf->e_phnum;
    return headers_read_at(
               headers, bytes, headers->segment, headers->count * sizeof(Elf64_Phdr), elf->e_phoff) &&
           headers_find_bias(headers, &bytes->mapping);
}

/* ---- Build-id ---- */

static void read_build_id(
    const struct headers *headers, const struct module_bytes *bytes, struct remote_module *module) {
    uint8_t notes[NOTES_SIZE_MAX];
    for (const Elf64_Phdr *segment = headers->segment; segment < headers->segment + headers->count;
         segment++) {
        if (segment->p_type != PT_NOTE) continue;
        uint64_t size = segment->p_filesz < sizeof notes ? segment->p_filesz : sizeof notes;
        bool read = headers->file >= 0 ? module_bytes_read_at(headers->file, notes, size, segment->p_offset)
                                       : module_bytes_read_at(bytes->process->memory, notes, size,
                                             headers->bias + segment->p_vaddr);
        module->build_id_size = read ? build_id_find(notes, size, segment->p_align, module->build_id) : 0;
        if (module->build_id_size) return;
    }
}

/* ---- Unwind information ---- */

static void find_unwind_header(struct module_bytes *bytes, const struct headers *headers) {
    const Elf64_Phdr *unwind = NULL, *last = headers->segment + headers->count;
    for (const Elf64_Phdr *segment = headers->segment; segment < last; segment++)
        if (segment->p_type == PT_GNU_EH_FRAME) unwind = segment;
    if (!unwind) {
        if (headers->file >= 0)
            frame_index_make(bytes, headers->file, &headers->elf, headers->bias, headers->end);
        return;
    }
    for (const Elf64_Phdr *segment = headers->segment; segment < last; segment++) {
        uint64_t inside = unwind->p_vaddr - segment->p_vaddr;
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_R)) continue;
        if (inside >= segment->p_filesz || unwind->p_memsz > segment->p_filesz - inside) continue;
        uint64_t low = headers->bias + segment->p_vaddr;
        if (segment->p_filesz > PART_SIZE_MAX || low + segment->p_filesz < low) return;
        /* A writable segment may have been changed by relocations: it is read from the process, not from the file. */
        if (!(segment->p_flags & PF_W))
            part_map(&bytes->part[PART_UNWIND], headers->file, segment->p_offset, low, segment->p_filesz);
        bytes->mapping.data_low = low;
        bytes->mapping.data_high = low + segment->p_filesz;
        bytes->mapping.header = low + inside;
        bytes->mapping.header_size = unwind->p_memsz;
        return;
    }
}

void module_bytes_open(struct module_bytes *bytes, const struct remote_process *process,
    const struct maps_line *line, uint64_t base, struct remote_module *module) {
    *bytes = (struct module_bytes){.process = process,
        .mapping = {.start = line->start,
            .end = line->end,
            .base = base,
            .device = line->device,
            .inode = line->inode,
            .file_offset = line->file_offset,
            .reader = read_bytes}};
    struct headers headers = {.file = file_open(process, line)};
    if ((headers.file >= 0 || base) && headers_read(&headers, bytes)) {
        read_build_id(&headers, bytes, module);
        find_unwind_header(bytes, &headers);
    }
    part_map(&bytes->part[PART_CODE], headers.file, line->file_offset, line->start, line->end - line->start);
    if (headers.file >= 0) close(headers.file);

    uint8_t first[MAPPING_IDENTITY_SIZE];
    if (bytes->mapping.header && mapping_copy_header(&bytes->mapping, first))
        bytes->mapping.identity = mapping_identity(first);
    else
        bytes->mapping.header = 0;
}
