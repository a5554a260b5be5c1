/* The functions of an ELF symbol table by address, for code without debug info. */
#ifndef MALLOSCOPE_SYMBOL_SYMBOL_TABLE_H
#define MALLOSCOPE_SYMBOL_SYMBOL_TABLE_H

#include "base/interval_map.h"

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_symbol {
    uint64_t address;
    uint64_t end;     /* of the function; if the symbol has no size, of its section */
    const char *name; /* as in the ELF table, owned by the Dwfl_Module */
    bool sized;       /* the symbol has a size */
    int rank;         /* of several symbols at one address, the one with the largest rank is used */
};

/* All zero is an empty table. */
struct symbol_table {
    struct table_symbol *symbols;
    size_t count;
    struct interval_map by_address;
};

/* Reads .symtab of the file or of its debug file; if there is none, .dynsym. The table stays empty if there is
 * neither. */
void symbol_table_read(struct symbol_table *table, Dwfl_Module *module);
void symbol_table_clear(struct symbol_table *table);

/* The symbol of the function that covers `address`, or NULL. A symbol without a size reaches to the next symbol
 * or to the end of its section. */
const struct table_symbol *symbol_table_find(const struct symbol_table *table, uint64_t address);

#endif
