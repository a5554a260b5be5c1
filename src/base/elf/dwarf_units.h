/* What DWARF knows about code: which functions an address belongs to, inlined calls included, and its line.
 *
 * libdw finds the scopes of an address by walking the whole unit, for each address again. Here the functions
 * of a unit are listed when the first of its addresses is asked for, and what was inlined into a function
 * when the first of its own is, into tables that are bisected:
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

/* What a function is called. All inlined calls of a function share this. */
struct dwarf_name {
    void *die;           /* the function's, or of an inlined one that of its abstract origin */
    const char *name;    /* without namespaces, or NULL */
    const char *linkage; /* or NULL */
    int line;            /* where the function is declared */
    const char *shown;   /* the name for people, kept here by the caller */
};

/* A function's code, or that of a call that was inlined. */
struct dwarf_scope {
    void *die;
    uint32_t caller; /* the scope it was inlined into, or SCOPE_NONE */

    /* Filled by dwarf_unit_describe. */
    int call_line; /* where it was called from, if it was inlined */
    const char *call_file;
    struct dwarf_name *name;
};

/* A function and what was inlined into it. */
struct dwarf_function {
    void *die;
    bool walked;
    struct interval_map by_address; /* scopes */
};

struct dwarf_units;

struct dwarf_unit {
    struct dwarf_units *all;
    Dwarf_Die die;      /* with the line table */
    Dwarf_Die code_die; /* with the functions: another one where the unit is split (.dwo) */
    const char *folder; /* in which it was compiled, or NULL; file names may be relative to it */
    bool opened, listed_nested;
    struct die_reader reader;
    struct dwarf_function *functions;
    uint32_t function_count, function_room;
    struct interval_map by_address;        /* functions that lie in the unit or in namespaces */
    struct interval_map nested_by_address; /* all functions: also those in types and in other functions */
    struct dwarf_scope *scopes;
    uint32_t scope_count, scope_room;
};

/* All zero is a program without DWARF. */
struct dwarf_units {
    struct dwarf_unit *units;
    uint32_t count;
    struct interval_map by_address;
    uint64_t code_low, code_high;
    bool lacks_parts; /* a unit is split and its other part (.dwo) is not here */
    htab_t names;     /* struct dwarf_name */
};

/* Lists the units. The structure must not move. Ranges outside [code_low, code_high) belong to code that the
 * linker has dropped. `dwarf` must outlive the units. */
void dwarf_units_read(struct dwarf_units *units, Dwarf *dwarf, uint64_t code_low, uint64_t code_high);
void dwarf_units_clear(struct dwarf_units *units);

/* The unit that covers `address`, or NULL. */
struct dwarf_unit *dwarf_units_find(struct dwarf_units *units, uint64_t address);

/* The innermost scope at `address`, or NULL. Good until the next search. */
struct dwarf_scope *dwarf_unit_find_scope(struct dwarf_unit *unit, uint64_t address);

/* Fills the scope's description. Its texts are owned by libdw. */
void dwarf_unit_describe(struct dwarf_unit *unit, struct dwarf_scope *scope);

/* The source line at `address`; `*ret_file` is owned by libdw. False if it is not known. */
bool dwarf_unit_find_line(struct dwarf_unit *unit, uint64_t address, const char **ret_file, int *ret_line);

#endif
