#include "base/elf/elf_slots.h"

#include "base/memory.h"

#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static unsigned kind_of(const GElf_Rela *relocation) {
    switch (GELF_R_TYPE(relocation->r_info)) {
    case R_X86_64_JUMP_SLOT:
    case R_X86_64_GLOB_DAT:
        return ELF_SLOT_FUNCTION;
    case R_X86_64_64:
        return ELF_SLOT_POINTER;
    case R_X86_64_RELATIVE:
        return ELF_SLOT_LOCAL;
    case R_X86_64_IRELATIVE:
        return ELF_SLOT_CHOSEN;
    default:
        return 0;
    }
}

/* The symbols that a section of relocations refers to. */
struct symbols {
    Elf *elf;
    Elf_Data *data;
    size_t name_section;
};

static struct symbols symbols_of(Elf *elf, const GElf_Shdr *relocations) {
    struct symbols symbols = {.elf = elf};
    Elf_Scn *section = elf_getscn(elf, relocations->sh_link);
    GElf_Shdr header;
    if (!section || !gelf_getshdr(section, &header)) return symbols;
    symbols.data = elf_getdata(section, NULL);
    symbols.name_section = header.sh_link;
    return symbols;
}

/* NULL if there is no such symbol, or it has no name. */
static const char *name_of(const struct symbols *symbols, const GElf_Rela *relocation) {
    GElf_Sym symbol;
    if (!symbols->data || !gelf_getsym(symbols->data, (int)GELF_R_SYM(relocation->r_info), &symbol))
        return NULL;
    const char *name = elf_strptr(symbols->elf, symbols->name_section, symbol.st_name);
    return name && *name ? name : NULL;
}

static void add_slot(struct elf_slots *slots, struct elf_slot slot) {
    if (slots->count == slots->room) {
        slots->room = slots->room ? 2 * slots->room : 256;
        slots->list = memory_reallocate(slots->list, slots->room * sizeof *slots->list);
    }
    slots->list[slots->count++] = slot;
}

static void read_relocations(
    struct elf_slots *slots, Elf *elf, Elf_Scn *section, const GElf_Shdr *header, bool lazy, unsigned kinds) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
    struct symbols symbols = symbols_of(elf, header);
    if (lazy) {
        free(slots->lazy);
        slots->lazy = memory_allocate_array(count + 1, sizeof *slots->lazy);
        slots->lazy_count = count;
    }
    for (size_t i = 0; i < count; i++) {
        GElf_Rela relocation;
        if (!gelf_getrela(data, (int)i, &relocation)) break;
        struct elf_slot slot = {.address = relocation.r_offset, .kind = kind_of(&relocation) & kinds};
        if (lazy) slots->lazy[i] = slot.address;
        if (!slot.kind) continue;
        if (slot.kind & (ELF_SLOT_LOCAL | ELF_SLOT_CHOSEN))
            slot.target = (uint64_t)relocation.r_addend;
        else if (!(slot.name = name_of(&symbols, &relocation)))
            continue;
        add_slot(slots, slot);
    }
}

static int by_address(const void *left, const void *right) {
    const struct elf_slot *a = left, *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

void elf_slots_read(struct elf_slots *slots, Elf *elf, unsigned kinds) {
    size_t names;
    bool has_names = elf_getshdrstrndx(elf, &names) == 0;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header)) continue;
        if (header.sh_type != SHT_RELA || !(header.sh_flags & SHF_ALLOC)) continue;
        const char *name = has_names ? elf_strptr(elf, names, header.sh_name) : NULL;
        read_relocations(slots, elf, section, &header, name && strcmp(name, ".rela.plt") == 0, kinds);
    }
    if (slots->count) qsort(slots->list, slots->count, sizeof *slots->list, by_address);
}

void elf_slots_clear(struct elf_slots *slots) {
    free(slots->list);
    free(slots->lazy);
    *slots = (struct elf_slots){0};
}

const struct elf_slot *elf_slots_find(const struct elf_slots *slots, uint64_t address) {
    struct elf_slot key = {.address = address};
    return slots->count ? bsearch(&key, slots->list, slots->count, sizeof key, by_address) : NULL;
}
