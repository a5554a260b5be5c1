/* The program headers of a mapped ELF file, if they do not lie in its first page. Tools that rewrite programs put them
 * elsewhere: BOLT 2 MiB into the file, at the beginning of a segment of its own. Where that is mapped, the program
 * headers themselves would tell. So likely places are tried, and one counts if what is found there says that it is
 * mapped there. */
#ifndef MALLOSCOPE_PLATFORM_PROGRAM_HEADERS_H
#define MALLOSCOPE_PLATFORM_PROGRAM_HEADERS_H

#include "platform/safe_read.h"

#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

/* A mapping of the file. */
struct program_headers_place {
    uint64_t base;                    /* where the file's first page is mapped */
    uint64_t start, end, file_offset; /* of the mapping */
};

/* Whether the headers in `table`, which was read at `address`, are mapped there as they say themselves. */
static inline bool program_headers_fit(
    const Elf64_Ehdr *elf, const Elf64_Phdr *table, uint64_t base, uint64_t address) {
    const Elf64_Phdr *first = NULL, *own = NULL;
    uint64_t size = (uint64_t)elf->e_phnum * sizeof *table;
    for (unsigned i = 0; i < elf->e_phnum; i++) {
        const Elf64_Phdr *segment = &table[i];
        if (segment->p_type != PT_LOAD) continue;
        if (!first && segment->p_offset < PAGE_SIZE_MIN) first = segment;
        uint64_t inside = elf->e_phoff - segment->p_offset;
        if (inside < segment->p_filesz && size <= segment->p_filesz - inside) own = segment;
    }
    if (!first || !own) return false;
    uint64_t bias = base - (first->p_vaddr - first->p_offset);
    return bias + own->p_vaddr + (elf->e_phoff - own->p_offset) == address;
}

/* Copies the program headers into `table`, which has room for `most`. False: they were not found. */
static inline bool program_headers_copy(
    const Elf64_Ehdr *elf, const struct program_headers_place *place, Elf64_Phdr *table, unsigned most) {
    uint64_t size = (uint64_t)elf->e_phnum * sizeof *table, inside = elf->e_phoff - place->file_offset;
    if (elf->e_phentsize != sizeof *table || elf->e_phnum == 0 || elf->e_phnum > most) return false;
    bool is_in_mapping = inside < place->end - place->start && size <= place->end - place->start - inside;
    const uint64_t addresses[] = {
        is_in_mapping ? place->start + inside : 0, place->base + elf->e_phoff, getauxval(AT_PHDR)};
    for (unsigned i = 0; i < sizeof addresses / sizeof *addresses; i++)
        if (addresses[i] && safe_read(table, addresses[i], size) &&
            program_headers_fit(elf, table, place->base, addresses[i]))
            return true;
    return false;
}

#endif
