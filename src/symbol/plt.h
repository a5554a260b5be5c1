/* Names for the stubs of the procedure linkage table (PLT), through which a file calls functions of other files.
 *
 * The linker gives stubs no symbols. But a stub jumps through a slot of the global offset table, and the relocation
 * of that slot names the function. Slots and relocations stay in stripped files.
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

/* Reads all stubs of an x86-64 file; a file for another machine gets an empty table. `symbols` names the
 * functions of this file that choose others when the program starts (IFUNC). The file and the symbols must
 * outlive the table. */
void plt_read(struct plt *plt, Elf *elf, const struct symbol_table *symbols);
void plt_clear(struct plt *plt);

/* The linkage name of the function that the stub at `address` leads to, or NULL if no stub lies there. */
const char *plt_find(const struct plt *plt, uint64_t address);

#endif
