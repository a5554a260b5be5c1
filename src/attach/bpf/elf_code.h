/* An ELF file as code: its functions by name and address, its bytes, and what its calls through slots mean.
 */
#ifndef MALLOSCOPE_ATTACH_BPF_ELF_CODE_H
#define MALLOSCOPE_ATTACH_BPF_ELF_CODE_H

#include "base/elf/dwarf_units.h"
#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All addresses are those of the ELF file (virtual, as linked). */
struct elf_function {
    const char *name;
    uint64_t address, size; /* size 0 = not known */
    bool is_exported;       /* other modules can be bound to it */
};

/* A word that the dynamic linker fills: with the address of the function `name`, or of `local`. */
struct elf_slot {
    uint64_t address;
    const char *name; /* or NULL */
    uint64_t local;
};

struct elf_code;

/* `search_debug`: where the file has no symbol table of its own, look for its separate debug file. `root` is
 * the folder that the program sees as "/". */
int elf_code_open(const char *path, const char *root, bool search_debug, struct elf_code **ret_elf,
    struct problem *problem);
void elf_code_close(struct elf_code *elf);

bool elf_code_is_64_bit(const struct elf_code *elf); /* and for this machine */
bool elf_code_is_dynamic(const struct elf_code *elf);
bool elf_code_has_symbols(const struct elf_code *elf); /* more than what it exports */

/* Sorted by address; several may share one. */
const struct elf_function *elf_code_functions(const struct elf_code *elf, size_t *ret_count);

/* The function that covers `address`, or NULL. */
const struct elf_function *elf_code_function_at(const struct elf_code *elf, uint64_t address);

/* The debug information, which is read when it is first asked for. Empty if there is none. */
struct dwarf_units *elf_code_debug(struct elf_code *elf);
/* What it says of the function that starts at `address`. False if it says nothing. */
bool elf_code_describe(struct elf_code *elf, uint64_t address, Dwarf_Die *ret_function);

/* Sorted by address. */
const struct elf_slot *elf_code_slots(const struct elf_code *elf, size_t *ret_count);
const struct elf_slot *elf_code_slot_at(const struct elf_code *elf, uint64_t address);

/* The code at `address` and how many bytes follow there; NULL outside of the file's code. */
const uint8_t *elf_code_bytes(const struct elf_code *elf, uint64_t address, size_t *ret_size);

/* Where the byte at `address` lies in the file. UINT64_MAX if it does not. */
uint64_t elf_code_offset(const struct elf_code *elf, uint64_t address);
/* The address of a byte of the file that is loaded. UINT64_MAX if it is not. */
uint64_t elf_code_address(const struct elf_code *elf, uint64_t offset);

/* Whether the file's constants hold this text. */
bool elf_code_has_text(const struct elf_code *elf, const char *text);

/* Whether it has a section of this name. */
bool elf_code_has_section(const struct elf_code *elf, const char *name);

#endif
