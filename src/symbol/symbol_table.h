/* The functions of an ELF symbol table by address, for code that has no DWARF. */
#ifndef MALLOSCOPE_SYMBOL_SYMBOL_TABLE_H
#define MALLOSCOPE_SYMBOL_SYMBOL_TABLE_H

#include "base/interval_map.h"

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_symbol {
    uint64_t address;
    uint64_t end;     /* if it has no size: of its section */
    const char *name; /* as in the table, owned by the Dwfl_Module */
    bool sized;
    int rank; /* of several names for one address the one with the largest is taken */
};

/* All zero is an empty table. */
struct symbol_table {
    struct table_symbol *symbols;
    size_t count;
    struct interval_map by_address;
};

/* Reads .symtab of the module or of its debug file, otherwise .dynsym. Leaves an empty table if there is
 * none. */
void symbol_table_read(struct symbol_table *table, Dwfl_Module *module);
void symbol_table_clear(struct symbol_table *table);

/* The function that covers `address`, or NULL. A symbol without a size reaches to the next symbol or to the
 * end of its section. */
const struct table_symbol *symbol_table_find(const struct symbol_table *table, uint64_t address);

#endif
