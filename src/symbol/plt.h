/* Names for the procedure linkage table: the stubs through which a file calls functions of others.
 *
 * The linker gives them no symbols. A stub jumps through a slot of the global offset table, and a relocation
 * of that slot names the function; both stay in stripped files.
 *
 *     malloc@plt:  endbr64
 *                  jmp *slot(%rip) ───► slot ◄─── R_X86_64_JUMP_SLOT malloc
 */
#ifndef MALLOSCOPE_SYMBOL_PLT_H
#define MALLOSCOPE_SYMBOL_PLT_H

#include "base/interval_map.h"
#include "symbol/symbol_table.h"

#include <gelf.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is a file without stubs. */
struct plt {
    const char **names; /* of the functions that the stubs lead to, owned by the ELF file */
    size_t count, room;
    struct interval_map by_address;
};

/* Reads all stubs of an x86-64 file; of another machine none. `symbols` names functions of the file itself
 * that are chosen when the program starts (IFUNC). The file and the symbols must outlive the table. */
void plt_read(struct plt *plt, Elf *elf, const struct symbol_table *symbols);
void plt_clear(struct plt *plt);

/* The linkage name of the function that the stub at `address` leads to, or NULL. */
const char *plt_find(const struct plt *plt, uint64_t address);

#endif
