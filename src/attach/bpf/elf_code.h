/* An ELF file as attach sees it: its functions by name and by address, its machine code, and the slots through
 * which the code calls functions of other files.
 *
 * All addresses are link-time addresses: as the file's own headers and symbol tables have them, before the file
 * is loaded anywhere. */
#ifndef MALLOSCOPE_ATTACH_BPF_ELF_CODE_H
#define MALLOSCOPE_ATTACH_BPF_ELF_CODE_H

#include "base/elf/dwarf_units.h"
#include "base/elf/elf_slots.h"
#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_function {
    const char *name;
    uint64_t address, size; /* size 0: not known */
    bool is_exported;       /* the dynamic linker can bind calls of other files to it */
};

struct elf_code;

/* With `search_debug`, a file that has no symbol table of its own gets the functions of its separate debug file.
 * `root` is the folder that the program sees as "/": debug files are looked for below it, too. */
int elf_code_open(const char *path, const char *root, bool search_debug, struct elf_code **ret_elf,
    struct problem *problem);
void elf_code_close(struct elf_code *elf);

bool elf_code_is_64_bit(const struct elf_code *elf);   /* a 64-bit file for x86 */
bool elf_code_is_dynamic(const struct elf_code *elf);  /* is loaded by the dynamic linker */
bool elf_code_has_symbols(const struct elf_code *elf); /* not only of the functions that it exports */

/* Sorted by address. Several functions may have one address. */
const struct elf_function *elf_code_functions(const struct elf_code *elf, size_t *ret_count);

/* The function whose code covers `address`, or NULL. */
const struct elf_function *elf_code_function_at(const struct elf_code *elf, uint64_t address);

/* The debug info. It is read at the first call; empty if there is none. */
struct dwarf_units *elf_code_debug(struct elf_code *elf);
/* The DIE of the function that starts at `address`. False if the debug info has none. */
bool elf_code_describe(struct elf_code *elf, uint64_t address, Dwarf_Die *ret_function);

/* The slots that lead to functions: those that are filled by name, and those with an address of this file. Sorted
 * by address. */
const struct elf_slot *elf_code_slots(const struct elf_code *elf, size_t *ret_count);
/* The slot at `address`, or NULL. */
const struct elf_slot *elf_code_slot_at(const struct elf_code *elf, uint64_t address);

/* The machine code at `address`; `*ret_size` bytes of it can be read. NULL if no code lies there. */
const uint8_t *elf_code_bytes(const struct elf_code *elf, uint64_t address, size_t *ret_size);

/* The offset in the file of the byte at `address`, or UINT64_MAX if it is in no loaded segment of the file. */
uint64_t elf_code_offset(const struct elf_code *elf, uint64_t address);

/* Whether `text` stands anywhere in the loaded bytes of the file. */
bool elf_code_has_text(const struct elf_code *elf, const char *text);

/* Whether the file has a section of this name. */
bool elf_code_has_section(const struct elf_code *elf, const char *name);

#endif
