#include "symbol/plt.h"

#include "base/elf/elf_slots.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

const char *plt_find(const struct plt *plt, uint64_t address) {
    uint32_t index = interval_map_find(&plt->by_address, address);
    return index == INTERVAL_NONE ? NULL : plt->names[index];
}

/* What a file's stubs lead to. */
struct destinations {
    struct elf_slots slots;
    const struct symbol_table *symbols;
};

/* The linkage name of the function that the slot at `address` leads to, or NULL. A function that is chosen when the
 * program starts (IFUNC) has the name of the function that chooses. */
static const char *name_of_slot(const struct destinations *destinations, uint64_t address) {
    const struct elf_slot *slot = elf_slots_find(&destinations->slots, address);
    if (!slot || slot->kind == ELF_SLOT_FUNCTION) return slot ? slot->name : NULL;
    const struct table_symbol *chooser = symbol_table_find(destinations->symbols, slot->target);
    return chooser ? chooser->name : NULL;
}

/* The linkage name of the function that the stub of `size` bytes at `address` leads to, or NULL. In front of the
 * jump or push there may be an `endbr64` or a `bnd` prefix. */
static const char *name_of_stub(
    const struct destinations *destinations, const uint8_t *code, size_t size, uint64_t address) {
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    const struct elf_slots *slots = &destinations->slots;
    size_t at = size > sizeof endbr64 && memcmp(code, endbr64, sizeof endbr64) == 0 ? sizeof endbr64 : 0;
    if (code[at] == 0xf2) at++;
    int32_t number;
    if (at + 6 <= size && code[at] == 0xff && code[at + 1] == 0x25) { /* jmp *number(%rip) */
        memcpy(&number, code + at + 2, sizeof number);
        return name_of_slot(destinations, address + at + 6 + (uint64_t)(int64_t)number);
    }
    if (at + 5 <= size && code[at] == 0x68) { /* push $number */
        memcpy(&number, code + at + 1, sizeof number);
        if (number < 0 || (size_t)number >= slots->lazy_count) return NULL;
        return name_of_slot(destinations, slots->lazy[number]);
    }
    return NULL;
}

static void read_stubs(
    struct plt *plt, const struct destinations *destinations, Elf_Scn *section, const GElf_Shdr *header) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t stub =
        header->sh_entsize == 8 ? 8 : 16; /* some linkers leave sh_entsize 0; their stubs have 16 bytes */
    for (size_t at = 0; data && data->d_buf && at + stub <= data->d_size; at += stub) {
        uint64_t address = header->sh_addr + at;
        const char *name = name_of_stub(destinations, (const uint8_t *)data->d_buf + at, stub, address);
        if (!name) continue;
        if (plt->count == plt->room) {
            plt->room = plt->room ? 2 * plt->room : 64;
            plt->names = memory_reallocate(plt->names, plt->room * sizeof *plt->names);
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
    struct destinations destinations = {.symbols = symbols};
    elf_slots_read(&destinations.slots, elf, ELF_SLOT_FUNCTION | ELF_SLOT_CHOSEN);
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_ALLOC)) continue;
        const char *name = elf_strptr(elf, names, header.sh_name);
        if (name && header.sh_type == SHT_PROGBITS && strncmp(name, ".plt", 4) == 0)
            read_stubs(plt, &destinations, section, &header);
    }
    interval_map_seal(&plt->by_address);
    elf_slots_clear(&destinations.slots);
}

void plt_clear(struct plt *plt) {
    interval_map_clear(&plt->by_address);
    free(plt->names);
    *plt = (struct plt){0};
}
