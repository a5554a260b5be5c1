/* The dynamic section of a loaded object: its symbols and its relocations.
 *
 * Of the struct link_map only `l_addr` (the object's base) and `l_ld` (its dynamic section) are read. */
#ifndef MALLOSCOPE_BASE_DYNAMIC_SECTION_H
#define MALLOSCOPE_BASE_DYNAMIC_SECTION_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Finds the dynamic section of the object whose ELF header is mapped at `header`. False: it has none. */
bool dynamic_section_at(uint64_t header, struct link_map *ret_object);

/* The symbol by which the object defines `name`, or NULL. */
const ElfW(Sym) * dynamic_section_find(const struct link_map *object, const char *name);

/* All symbols of the object, those that it uses and those that it defines. Returns their number. They lie in
 * memory that cannot be written to. */
size_t dynamic_section_symbols(const struct link_map *object, ElfW(Sym) * *ret_symbols);

/* The words of an object that the linker fills in. */
struct relocations {
    const ElfW(Sym) * symbols;
    const char *text;             /* the names of the symbols */
    const ElfW(Rela) * tables[2]; /* of data, and of calls through the PLT; NULL: there is none */
    size_t counts[2];
};

struct relocations dynamic_section_relocations(const struct link_map *object);

/* The name of the symbol whose address the linker fills in there; "" if there is no symbol. */
const char *dynamic_section_relocation_name(
    const struct relocations *relocations, const ElfW(Rela) * relocation);

#endif
