/* Reading a unit's DIEs one after the other, as they lie in the file.
 *
 * libdw gets from one DIE to the next by decoding each attribute anew. Nearly all DIEs of a function are
 * parameters and variables that only have to be passed; so here an abbreviation is taken apart once, and a
 * DIE whose attributes all have a fixed size is passed by one addition. What a value stands for is left to
 * libdw. */
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
    struct abbreviation **abbreviations; /* by code, NULL = not seen yet */
    uint64_t abbreviation_count;
    struct abbreviation *rare; /* the last one whose code is too large for the table */
};

/* What is seen of a DIE in passing. Attributes that it lacks have the code 0. */
struct passed_die {
    Dwarf_Die die;
    unsigned tag; /* 0: no DIE, but the end of a list of children */
    bool has_children;
    bool has_ranges;
    Dwarf_Attribute low_pc, high_pc, sibling;
};

/* False if the unit cannot be read. Ended by die_reader_end, also then. */
bool die_reader_start(struct die_reader *reader, const Dwarf_Die *unit);
void die_reader_end(struct die_reader *reader);

/* Goes to a DIE of the unit: it is the next one. */
void die_reader_go_to(struct die_reader *reader, const Dwarf_Die *die);

/* Reads the next DIE, be it child, sibling or another. False at the end of the unit, or where it is damaged.
 */
bool die_reader_next(struct die_reader *reader, struct passed_die *ret_die);

/* Passes the children of the DIE that was read last. False as above. */
bool die_reader_pass_children(struct die_reader *reader, const struct passed_die *die);

#endif
