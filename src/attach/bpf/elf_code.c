#include "attach/bpf/elf_code.h"

#include "base/elf/elf_segments.h"
#include "base/memory.h"
#include "base/open_regular.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYMBOLS_MOST                                                                                         \
    (1 << 25) /* the largest programs have a few million; a file with holes may claim any number */

struct elf_code {
    int fd;
    Elf *handle;
    const uint8_t *bytes;
    size_t size;
    GElf_Ehdr header;
    struct elf_segments segments; /* no more of each than the file really has */
    struct elf_function *functions;
    size_t function_count, function_room;
    struct elf_slots slots;
    bool is_dynamic, has_symbols;
    Dwfl *debug; /* NULL: no separate debug file was looked for. Owns the names that come from one */
    Dwfl_Module *debug_module;
    Dwfl_Callbacks debug_callbacks;
    char *debug_path;
    bool is_dwarf_read; /* the first request has read what follows */
    Dwarf *dwarf;       /* NULL: there is no debug info */
    struct dwarf_units units;
};

/* ---- reading ---- */

static void read_segments(struct elf_code *elf) {
    size_t count = 0;
    if (elf_getphdrnum(elf->handle, &count) != 0) return;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(elf->handle, (int)i, &header) && header.p_type == PT_INTERP) elf->is_dynamic = true;
    }
    elf_segments_read(&elf->segments, elf->handle);
    for (size_t i = 0; i < elf->segments.count; i++) {
        struct elf_segment *segment = &elf->segments.list[i];
        uint64_t left = segment->file_offset < elf->size ? elf->size - segment->file_offset : 0;
        if (segment->file_size > left) segment->file_size = left;
    }
}

static void add_function(
    struct elf_code *elf, const char *name, const GElf_Sym *symbol, uint64_t address, bool exported) {
    int type = GELF_ST_TYPE(symbol->st_info);
    if (symbol->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_NOTYPE) || !name || !*name) return;
    if (elf->function_count == elf->function_room) {
        elf->function_room = elf->function_room ? 2 * elf->function_room : 1024;
        elf->functions = memory_reallocate(elf->functions, elf->function_room * sizeof *elf->functions);
    }
    int binding = GELF_ST_BIND(symbol->st_info);
    elf->functions[elf->function_count++] = (struct elf_function){
        name, address, symbol->st_size, exported && (binding == STB_GLOBAL || binding == STB_WEAK)};
}

static void read_symbols(struct elf_code *elf, Elf_Scn *section, const GElf_Shdr *header) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data && header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
    if (count > SYMBOLS_MOST) count = SYMBOLS_MOST;
    for (size_t i = 1; i < count; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol)) break;
        const char *name = elf_strptr(elf->handle, header->sh_link, symbol.st_name);
        add_function(elf, name, &symbol, symbol.st_value, header->sh_type == SHT_DYNSYM);
    }
}

static void read_sections(struct elf_code *elf) {
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf->handle, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header)) continue;
        if (header.sh_type == SHT_SYMTAB) elf->has_symbols = true;
        if (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB) read_symbols(elf, section, &header);
    }
}

static int by_address(const void *a, const void *b) {
    const struct elf_function *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* The functions of a stripped file, from its separate debug file, or from the symbol table that some distributions
 * put into the file in compressed form (.gnu_debugdata). libdwfl finds both. */
static void read_debug_symbols(struct elf_code *elf, const char *path, const char *root) {
    elf->debug_path = memory_format_text(":.debug:/usr/lib/debug:%s/usr/lib/debug", root);
    elf->debug_callbacks = (Dwfl_Callbacks){.find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
        .debuginfo_path = &elf->debug_path};
    elf->debug = dwfl_begin(&elf->debug_callbacks);
    if (!elf->debug) return;
    Dwfl_Module *module = dwfl_report_elf(elf->debug, path, path, -1, 0, true);
    dwfl_report_end(elf->debug, NULL, NULL);
    GElf_Addr bias = 0;
    if (!module || !dwfl_module_getelf(module, &bias)) return;
    elf->debug_module = module;
    int count = dwfl_module_getsymtab(module);
    if (count > SYMBOLS_MOST) count = SYMBOLS_MOST;
    size_t before = elf->function_count;
    for (int i = 0; i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *name = dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);
        add_function(elf, name, &symbol, address - bias, false);
    }
    elf->has_symbols = elf->function_count > 2 * before;
}

int elf_code_open(const char *path, const char *root, bool search_debug, struct elf_code **ret_elf,
    struct problem *problem) {
    elf_version(EV_CURRENT);
    struct elf_code *elf = memory_allocate(sizeof *elf);
    elf->fd = open_regular(AT_FDCWD, path, 0);
    int error = elf->fd < 0 ? -elf->fd : 0;
    if (elf->fd >= 0) elf->handle = elf_begin(elf->fd, ELF_C_READ_MMAP, NULL);
    if (elf->handle) elf->bytes = (const uint8_t *)elf_rawfile(elf->handle, &elf->size);
    if (!elf->bytes || elf_kind(elf->handle) != ELF_K_ELF || !gelf_getehdr(elf->handle, &elf->header)) {
        elf_code_close(elf);
        return problem_set(problem, problem_kind_of_errno(error), problem_remedy_of_errno(error),
            "cannot read '%s': %s", path, error ? strerror(error) : "not an ELF file");
    }
    read_segments(elf);
    read_sections(elf);
    if (search_debug && !elf->has_symbols) read_debug_symbols(elf, path, root);
    if (elf->function_count) qsort(elf->functions, elf->function_count, sizeof *elf->functions, by_address);
    elf_slots_read(&elf->slots, elf->handle, ELF_SLOT_FUNCTION | ELF_SLOT_POINTER | ELF_SLOT_LOCAL);
    *ret_elf = elf;
    return 0;
}

void elf_code_close(struct elf_code *elf) {
    if (!elf) return;
    dwarf_units_clear(&elf->units);
    if (!elf->debug_module) dwarf_end(elf->dwarf);
    if (elf->debug) dwfl_end(elf->debug);
    free(elf->debug_path);
    elf_segments_clear(&elf->segments);
    free(elf->functions);
    elf_slots_clear(&elf->slots);
    elf_end(elf->handle);
    if (elf->fd >= 0) close(elf->fd);
    free(elf);
}

/* ---- looking things up ---- */

bool elf_code_is_64_bit(const struct elf_code *elf) {
    return elf->header.e_ident[EI_CLASS] == ELFCLASS64 && elf->header.e_machine == EM_X86_64;
}

bool elf_code_is_dynamic(const struct elf_code *elf) {
    return elf->is_dynamic;
}

bool elf_code_has_symbols(const struct elf_code *elf) {
    return elf->has_symbols;
}

const struct elf_function *elf_code_functions(const struct elf_code *elf, size_t *ret_count) {
    *ret_count = elf->function_count;
    return elf->functions;
}

const struct elf_function *elf_code_function_at(const struct elf_code *elf, uint64_t address) {
    size_t low = 0, high = elf->function_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (elf->functions[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    /* Several functions may start at that address: the one whose size is known counts. */
    for (size_t i = low; i-- > 0;) {
        const struct elf_function *function = &elf->functions[i];
        if (function->size && address < function->address + function->size) return function;
        if (function->address != elf->functions[low - 1].address) break;
    }
    return NULL;
}

static void read_dwarf(struct elf_code *elf) {
    uint64_t low, high;
    elf_segments_code_range(&elf->segments, &low, &high);
    Dwarf_Addr bias;
    elf->is_dwarf_read = true;
    elf->dwarf = elf->debug_module ? dwfl_module_getdwarf(elf->debug_module, &bias)
                                   : dwarf_begin_elf(elf->handle, DWARF_C_READ, NULL);
    if (elf->dwarf) dwarf_units_read(&elf->units, elf->dwarf, low, high);
}

struct dwarf_units *elf_code_debug(struct elf_code *elf) {
    if (!elf->is_dwarf_read) read_dwarf(elf);
    return &elf->units;
}

bool elf_code_describe(struct elf_code *elf, uint64_t address, Dwarf_Die *ret_function) {
    struct dwarf_unit *unit = dwarf_units_find(elf_code_debug(elf), address);
    const struct dwarf_scope *scope = unit ? dwarf_unit_find_scope(unit, address) : NULL;
    while (scope && scope->caller != SCOPE_NONE) scope = &unit->scopes[scope->caller];
    if (!scope) return false;
    *ret_function = (Dwarf_Die){.addr = scope->die, .cu = unit->code_die.cu};
    Dwarf_Addr entry;
    return dwarf_entrypc(ret_function, &entry) == 0 && entry == address;
}

const struct elf_slot *elf_code_slots(const struct elf_code *elf, size_t *ret_count) {
    *ret_count = elf->slots.count;
    return elf->slots.list;
}

const struct elf_slot *elf_code_slot_at(const struct elf_code *elf, uint64_t address) {
    return elf_slots_find(&elf->slots, address);
}

const uint8_t *elf_code_bytes(const struct elf_code *elf, uint64_t address, size_t *ret_size) {
    for (size_t i = 0; i < elf->segments.count; i++) {
        const struct elf_segment *segment = &elf->segments.list[i];
        if (!segment->has_code || address < segment->address ||
            address - segment->address >= segment->file_size)
            continue;
        uint64_t at = address - segment->address;
        *ret_size = segment->file_size - at;
        return elf->bytes + segment->file_offset + at;
    }
    return NULL;
}

uint64_t elf_code_offset(const struct elf_code *elf, uint64_t address) {
    for (size_t i = 0; i < elf->segments.count; i++) {
        const struct elf_segment *segment = &elf->segments.list[i];
        if (address >= segment->address && address - segment->address < segment->file_size)
            return address - segment->address + segment->file_offset;
    }
    return UINT64_MAX;
}

bool elf_code_has_text(const struct elf_code *elf, const char *text) {
    for (size_t i = 0; i < elf->segments.count; i++) {
        const struct elf_segment *segment = &elf->segments.list[i];
        if (segment->file_size &&
            memmem(elf->bytes + segment->file_offset, segment->file_size, text, strlen(text)))
            return true;
    }
    return false;
}

bool elf_code_has_section(const struct elf_code *elf, const char *wanted) {
    size_t names;
    if (elf_getshdrstrndx(elf->handle, &names) != 0) return false;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf->handle, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header)) continue;
        const char *name = elf_strptr(elf->handle, names, header.sh_name);
        if (name && strcmp(name, wanted) == 0) return true;
    }
    return false;
}
