/* An ELF file as code: its functions by name and address, its bytes, and what its calls through slots mean.
 */
#ifndef MALLOSCOPE_ATTACH_BPF_ELF_CODE_H
#define MALLOSCOPE_ATTACH_BPF_ELF_CODE_H

#include "base/problem.h"
#include "symbol/dwarf_units.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All addresses are those of the ELF file (virtual, as linked). */
struct image_function {
    const char *name;
    uint64_t address, size; /* size 0 = not known */
    bool is_exported;       /* other modules can be bound to it */
};

/* A word that the dynamic linker fills: with the address of the function `name`, or of `local`. */
struct image_slot {
    uint64_t address;
    const char *name; /* or NULL */
    uint64_t local;
};

struct image;

/* `search_debug`: where the file has no symbol table of its own, look for its separate debug file. `root` is
 * the folder that the program sees as "/". */
int image_open(
    const char *path, const char *root, bool search_debug, struct image **ret_image, struct problem *problem);
void image_close(struct image *image);

bool image_is_64_bit(const struct image *image); /* and for this machine */
bool image_is_dynamic(const struct image *image);
bool image_has_symbols(const struct image *image); /* more than what it exports */

/* Sorted by address; several may share one. */
const struct image_function *image_functions(const struct image *image, size_t *ret_count);

/* The function that covers `address`, or NULL. */
const struct image_function *image_function_at(const struct image *image, uint64_t address);

/* The debug information, which is read when it is first asked for. Empty if there is none. */
struct dwarf_units *image_debug(struct image *image);
/* What it says of the function that starts at `address`. False if it says nothing. */
bool image_describe(struct image *image, uint64_t address, Dwarf_Die *ret_function);

/* Sorted by address. */
const struct image_slot *image_slots(const struct image *image, size_t *ret_count);
const struct image_slot *image_slot_at(const struct image *image, uint64_t address);

/* The code at `address` and how many bytes follow there; NULL outside of the file's code. */
const uint8_t *image_code(const struct image *image, uint64_t address, size_t *ret_size);

/* Where the byte at `address` lies in the file. UINT64_MAX if it does not. */
uint64_t image_offset(const struct image *image, uint64_t address);
/* The address of a byte of the file that is loaded. UINT64_MAX if it is not. */
uint64_t image_address(const struct image *image, uint64_t offset);

/* Whether the file's constants hold this text. */
bool image_has_text(const struct image *image, const char *text);

/* Whether it has a section of this name. */
bool image_has_section(const struct image *image, const char *name);

#endif
