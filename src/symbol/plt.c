#include "symbol/plt.h"

#include <libiberty/libiberty.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A word that the dynamic linker fills with the address of a function. */
struct slot {
    uint64_t address;
    const char *name;
};

struct slots {
    struct slot *slots; /* sorted by address once all are read */
    size_t count, room;
    const char **lazy; /* those of .rela.plt in its order: lazy stubs push their number */
    size_t lazy_count;
};

const char *plt_find(const struct plt *plt, uint64_t address) {
    uint32_t index = interval_map_find(&plt->by_address, address);
    return index == INTERVAL_NONE ? NULL : plt->names[index];
}

static const char *name_of_relocation(
    Elf *elf, size_t symbol_section, const GElf_Rela *relocation, const struct symbol_table *symbols) {
    switch (GELF_R_TYPE(relocation->r_info)) {
    case R_X86_64_JUMP_SLOT:
    case R_X86_64_GLOB_DAT: {
        Elf_Scn *section = elf_getscn(elf, symbol_section);
        GElf_Shdr header;
        GElf_Sym symbol;
        if (!gelf_getshdr(section, &header) ||
            !gelf_getsym(elf_getdata(section, NULL), (int)GELF_R_SYM(relocation->r_info), &symbol))
            return NULL;
        const char *name = elf_strptr(elf, header.sh_link, symbol.st_name);
        return name && *name ? name : NULL;
    }
    case R_X86_64_IRELATIVE: {
        const struct table_symbol *chooser = symbol_table_find(symbols, (uint64_t)relocation->r_addend);
        return chooser ? chooser->name : NULL;
    }
    default:
        return NULL;
    }
}

static void add_slot(struct slots *slots, uint64_t address, const char *name) {
    if (slots->count == slots->room) {
        slots->room = slots->room ? 2 * slots->room : 64;
        slots->slots = xrealloc(slots->slots, slots->room * sizeof *slots->slots);
    }
    slots->slots[slots->count++] = (struct slot){address, name};
}

static void read_relocations(struct slots *slots, Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
    bool lazy, const struct symbol_table *symbols) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
    if (lazy) {
        free(slots->lazy);
        slots->lazy = xcalloc(count + 1, sizeof *slots->lazy);
        slots->lazy_count = count;
    }
    for (size_t i = 0; i < count; i++) {
        GElf_Rela relocation;
        if (!gelf_getrela(data, (int)i, &relocation)) break;
        const char *name = name_of_relocation(elf, header->sh_link, &relocation, symbols);
        if (!name) continue;
        add_slot(slots, relocation.r_offset, name);
        if (lazy) slots->lazy[i] = name;
    }
}

static int compare_slots(const void *left, const void *right) {
    const struct slot *a = left, *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static const char *name_of_slot(const struct slots *slots, uint64_t address) {
    struct slot key = {.address = address};
    const struct slot *found =
        slots->count ? bsearch(&key, slots->slots, slots->count, sizeof key, compare_slots) : NULL;
    return found ? found->name : NULL;
}

/* Where the stub of `size` bytes at `address` leads to. What stands before the jump is `endbr64` or a `bnd`
 * prefix, if anything. */
static const char *name_of_stub(
    const struct slots *slots, const uint8_t *code, size_t size, uint64_t address) {
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    size_t at = size > sizeof endbr64 && memcmp(code, endbr64, sizeof endbr64) == 0 ? sizeof endbr64 : 0;
    if (code[at] == 0xf2) at++;
    int32_t number;
    if (at + 6 <= size && code[at] == 0xff && code[at + 1] == 0x25) { /* jmp *number(%rip) */
        memcpy(&number, code + at + 2, sizeof number);
        return name_of_slot(slots, address + at + 6 + (uint64_t)(int64_t)number);
    }
    if (at + 5 <= size && code[at] == 0x68) { /* push $number */
        memcpy(&number, code + at + 1, sizeof number);
        return number >= 0 && (size_t)number < slots->lazy_count ? slots->lazy[number] : NULL;
    }
    return NULL;
}

static void read_stubs(
    struct plt *plt, const struct slots *slots, Elf_Scn *section, const GElf_Shdr *header) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t stub = header->sh_entsize == 8 ? 8 : 16; /* some linkers leave it out */
    for (size_t at = 0; data && data->d_buf && at + stub <= data->d_size; at += stub) {
        uint64_t address = header->sh_addr + at;
        const char *name = name_of_stub(slots, (const uint8_t *)data->d_buf + at, stub, address);
        if (!name) continue;
        if (plt->count == plt->room) {
            plt->room = plt->room ? 2 * plt->room : 64;
            plt->names = xrealloc(plt->names, plt->room * sizeof *plt->names);
        }
        interval_map_add(&plt->by_address, address, address + stub, (uint32_t)plt->count);
        plt->names[plt->count++] = name;
    }
}

void plt_read(struct plt *plt, Elf *elf, const struct symbol_table *symbols) {
    GElf_Ehdr file;
    size_t names;
    if (!gelf_getehdr(elf, &file) || file.e_machine != EM_X86_64 || elf_getshdrstrndx(elf, &names) != 0)
        return;
    struct slots slots = {0};
    enum { RELOCATIONS, STUBS, PASSES };
    for (int pass = RELOCATIONS; pass < PASSES; pass++) {
        for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
            GElf_Shdr header;
            if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_ALLOC)) continue;
            const char *name = elf_strptr(elf, names, header.sh_name);
            if (!name) continue;
            if (pass == RELOCATIONS && header.sh_type == SHT_RELA)
                read_relocations(&slots, elf, section, &header, strcmp(name, ".rela.plt") == 0, symbols);
            if (pass == STUBS && header.sh_type == SHT_PROGBITS && strncmp(name, ".plt", 4) == 0)
                read_stubs(plt, &slots, section, &header);
        }
        if (pass == RELOCATIONS && slots.count)
            qsort(slots.slots, slots.count, sizeof *slots.slots, compare_slots);
    }
    interval_map_seal(&plt->by_address);
    free(slots.slots);
    free(slots.lazy);
}

void plt_clear(struct plt *plt) {
    interval_map_clear(&plt->by_address);
    free(plt->names);
    *plt = (struct plt){0};
}
