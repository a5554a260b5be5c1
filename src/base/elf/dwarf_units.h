/* What the DWARF debug info of a file says about code: the function that an address belongs to, the calls that
 * were inlined there, and the source line.
 *
 * libdw finds the scopes of an address by reading the whole unit, again for each address. This reader lists the
 * functions of a unit at the first request for one of its addresses, and the calls that were inlined into a
 * function at the first request for one of the function's addresses. After that a request is a binary search:
 *
 *     address ──► unit ──► function ──► innermost scope ──► scope it was inlined into ──► … ──► the function
 */
#ifndef MALLOSCOPE_BASE_ELF_DWARF_UNITS_H
#define MALLOSCOPE_BASE_ELF_DWARF_UNITS_H

#include "base/elf/die_reader.h"
#include "base/interval_map.h"

#include <elfutils/libdw.h>
#include <libiberty/hashtab.h>
#include <stdbool.h>
#include <stdint.h>

#define SCOPE_NONE INTERVAL_NONE

/* The names of a function. All inlined calls of the function share one of these. */
struct dwarf_name {
    void *die;           /* the DIE of the function; of an inlined function its abstract origin */
    const char *name;    /* in the source, without namespaces; or NULL */
    const char *linkage; /* linkage name, or NULL */
    int line;            /* where the function is declared; 0: not known */
    const char *shown;   /* for the caller: the name for people. NULL until the caller sets it */
};

/* A scope: the code of a function, or of a call that was inlined. */
struct dwarf_scope {
    void *die;
    uint32_t caller; /* index of the scope that it was inlined into; SCOPE_NONE: it was not inlined */

    /* Filled in by dwarf_unit_describe. */
    int call_line; /* the line of the call, if it was inlined */
    const char *call_file;
    struct dwarf_name *name;
};

/* A function with the calls that were inlined into it. */
struct dwarf_function {
    void *die;
    bool walked;                    /* its scopes have been listed */
    struct interval_map by_address; /* from an address to the index of the innermost scope */
};

struct dwarf_units;

struct dwarf_unit {
    struct dwarf_units *all;
    Dwarf_Die die;      /* the DIE with the line table */
    Dwarf_Die code_die; /* the DIE with the functions: another one if the unit is split (.dwo) */
    const char *folder; /* in which the unit was compiled, or NULL; file names may be relative to it */
    bool opened;        /* the functions have been listed in by_address */
    bool listed_nested; /* and in nested_by_address */
    struct die_reader reader;
    struct dwarf_function *functions;
    uint32_t function_count, function_room;
    struct interval_map by_address;        /* the functions at the top of the unit and in namespaces */
    struct interval_map nested_by_address; /* all functions, also those inside types and other functions */
    struct dwarf_scope *scopes;
    uint32_t scope_count, scope_room;
};

/* All zero is a file without debug info. */
struct dwarf_units {
    struct dwarf_unit *units;
    uint32_t count;
    struct interval_map by_address;
    uint64_t code_low, code_high;
    bool lacks_parts; /* a unit is split, and its other part (.dwo) does not exist here */
    htab_t names;     /* struct dwarf_name */
};

/* Lists the units. The structure must not move from then on, and `dwarf` must outlive it. Address ranges that
 * begin outside [code_low, code_high) are ignored: they belong to code that the linker has removed. */
void dwarf_units_read(struct dwarf_units *units, Dwarf *dwarf, uint64_t code_low, uint64_t code_high);
void dwarf_units_clear(struct dwarf_units *units);

/* The unit that covers `address`, or NULL. */
struct dwarf_unit *dwarf_units_find(struct dwarf_units *units, uint64_t address);

/* The innermost scope at `address`, or NULL. The pointer is good until the next search. */
struct dwarf_scope *dwarf_unit_find_scope(struct dwarf_unit *unit, uint64_t address);

/* Fills in the description of a scope. Its texts are owned by libdw. */
void dwarf_unit_describe(struct dwarf_unit *unit, struct dwarf_scope *scope);

/* The source line at `address`; `*ret_file` is owned by libdw. False if it is not known. */
bool dwarf_unit_find_line(struct dwarf_unit *unit, uint64_t address, const char **ret_file, int *ret_line);

#endif
