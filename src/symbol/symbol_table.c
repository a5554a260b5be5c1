#include "symbol/symbol_table.h"

#include "base/memory.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#define SYMBOLS_MOST                                                                                         \
    (1 << 25) /* the largest programs have a few million; a file with holes may claim any number */

const struct table_symbol *symbol_table_find(const struct symbol_table *table, uint64_t address) {
    uint32_t index = interval_map_find(&table->by_address, address);
    return index == INTERVAL_NONE ? NULL : &table->symbols[index];
}

/* Whether the symbol may be that of code. Hand-written assembly often leaves the type out. Names that begin with
 * '$' or '.' are marks for tools. */
static bool may_be_code(const GElf_Sym *symbol, const char *name, GElf_Word section) {
    int type = GELF_ST_TYPE(symbol->st_info);
    if (section == SHN_UNDEF || section == SHN_ABS || section == (GElf_Word)-1) return false;
    if (!name[0] || name[0] == '$' || name[0] == '.') return false;
    return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

/* The end of the section if it contains code, 0 if not. UINT64_MAX if the file has no section headers. */
static uint64_t end_of_code_section(Elf *elf, GElf_Word section, GElf_Addr bias) {
    GElf_Shdr header;
    if (!gelf_getshdr(elf_getscn(elf, section), &header)) return UINT64_MAX;
    return header.sh_flags & SHF_EXECINSTR ? header.sh_addr + bias + header.sh_size : 0;
}

/* Prefers functions to bare labels, public names to private ones, and `malloc` to `__libc_malloc`. */
static int rank_of(const GElf_Sym *symbol, const char *name) {
    size_t underscores = strspn(name, "_");
    return (GELF_ST_TYPE(symbol->st_info) != STT_NOTYPE) * 64 +
           (GELF_ST_BIND(symbol->st_info) != STB_LOCAL) * 32 + (symbol->st_size > 0) * 16 -
           (underscores < 15 ? (int)underscores : 15);
}

static int compare_symbols(const void *left, const void *right) {
    const struct table_symbol *a = left, *b = right;
    if (a->address != b->address) return a->address < b->address ? -1 : 1;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    return strcmp(b->name, a->name);
}

/* Enters the best symbol of each address: the symbols are sorted by address and rank, so it is the last one. */
static void index_symbols(struct symbol_table *table) {
    uint64_t covered = 0; /* up to here, symbols with a size cover the code */
    for (size_t i = 0; i < table->count; i++) {
        const struct table_symbol *symbol = &table->symbols[i], *next = symbol + 1;
        bool last = i + 1 == table->count;
        if (!last && next->address == symbol->address) continue;
        if (symbol->sized) {
            interval_map_add(&table->by_address, symbol->address, symbol->end, (uint32_t)i);
            if (symbol->end > covered) covered = symbol->end;
        } else if (symbol->address >= covered) {
            uint64_t end = last || next->address > symbol->end ? symbol->end : next->address;
            interval_map_add(&table->by_address, symbol->address, end, (uint32_t)i);
        }
    }
    interval_map_seal(&table->by_address);
}

void symbol_table_read(struct symbol_table *table, Dwfl_Module *module) {
    int all = dwfl_module_getsymtab(module);
    size_t room = 0;
    if (all > SYMBOLS_MOST) all = SYMBOLS_MOST;
    for (int i = 0; i < all; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        GElf_Word section;
        Elf *elf;
        Dwarf_Addr bias;
        const char *name = dwfl_module_getsym_info(module, i, &symbol, &address, &section, &elf, &bias);
        if (!name || !may_be_code(&symbol, name, section)) continue;
        uint64_t section_end = end_of_code_section(elf, section, bias);
        if (address >= section_end) continue;
        bool sized = symbol.st_size > 0 && symbol.st_size <= section_end - address;
        if (table->count == room) {
            room = room ? 2 * room : 1024;
            table->symbols = memory_reallocate(table->symbols, room * sizeof *table->symbols);
        }
        table->symbols[table->count++] = (struct table_symbol){
            .address = address,
            .end = sized ? address + symbol.st_size : section_end,
            .name = name,
            .sized = sized,
            .rank = rank_of(&symbol, name),
        };
    }
    if (table->count) qsort(table->symbols, table->count, sizeof *table->symbols, compare_symbols);
    index_symbols(table);
}

void symbol_table_clear(struct symbol_table *table) {
    interval_map_clear(&table->by_address);
    free(table->symbols);
    *table = (struct symbol_table){0};
}
