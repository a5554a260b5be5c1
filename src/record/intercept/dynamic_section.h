/* What the dynamic section of a loaded object says: its symbols and its relocations. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_DYNAMIC_SECTION_H
#define MALLOSCOPE_RECORD_INTERCEPT_DYNAMIC_SECTION_H

#include <link.h>
#include <stddef.h>

/* That of one object, or NULL. Of the object only `l_addr` and `l_ld` are looked at. */
const ElfW(Sym) * dynamic_section_find(const struct link_map *object, const char *name);

/* What an object has the linker fill in: data and calls. */
struct relocations {
    const ElfW(Sym) * symbols;
    const char *text;
    const ElfW(Rela) * tables[2];
    size_t counts[2];
};

struct relocations dynamic_section_relocations(const struct link_map *object);

/* The name that is looked up for it, or "". */
const char *dynamic_section_relocation_name(
    const struct relocations *relocations, const ElfW(Rela) * relocation);

#endif
