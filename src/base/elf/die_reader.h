/* Reads the DIEs of a unit of debug info, one after the other in the order of the file.
 *
 * libdw decodes every attribute of a DIE to get to the next DIE. But most DIEs of a function are parameters and
 * variables, which only have to be skipped. This reader decodes each abbreviation once. A DIE whose attributes
 * all have fixed sizes is then skipped by one addition. Values of attributes are left to libdw. */
#ifndef MALLOSCOPE_BASE_ELF_DIE_READER_H
#define MALLOSCOPE_BASE_ELF_DIE_READER_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

struct abbreviation;

struct die_reader {
    Dwarf_Die unit;
    const uint8_t *start, *end; /* of the unit, its header included */
    const uint8_t *at;
    uint16_t version;
    uint8_t address_size, offset_size;
    struct abbreviation **abbreviations; /* by code; NULL: not decoded yet */
    uint64_t abbreviation_count;         /* size of that table */
    struct abbreviation *rare; /* the last one that was decoded whose code is too large for the table */
};

/* What the reader tells about a DIE. An attribute that the DIE does not have has the code 0. */
struct passed_die {
    Dwarf_Die die;
    unsigned tag; /* 0: this is no DIE, but the end of a list of children */
    bool has_children;
    bool has_ranges;
    Dwarf_Attribute low_pc, high_pc, sibling;
};

/* False if the unit cannot be read. die_reader_end must be called also then. */
bool die_reader_start(struct die_reader *reader, const Dwarf_Die *unit);
void die_reader_end(struct die_reader *reader);

/* Moves to a DIE of the unit: die_reader_next will read it. */
void die_reader_go_to(struct die_reader *reader, const Dwarf_Die *die);

/* Reads the next DIE in the order of the file: a child, a sibling, or a sibling of a parent. False at the end of
 * the unit, or if the unit is damaged there. */
bool die_reader_next(struct die_reader *reader, struct passed_die *ret_die);

/* Skips the children of the DIE that was read last. False as above. */
bool die_reader_pass_children(struct die_reader *reader, const struct passed_die *die);

#endif
