#include "symbol/dwarf_units.h"

#include <dwarf.h>
#include <libiberty/libiberty.h>
#include <stdlib.h>
#include <string.h>

/* Deeper than any compiler nests: damaged DWARF must not exhaust the stack. */
#define NESTING_MAX 1000

static void walk_unit(struct dwarf_units *units, struct dwarf_unit *unit);

struct dwarf_unit *dwarf_units_find(struct dwarf_units *units, uint64_t address) {
    uint32_t index = interval_map_find(&units->by_address, address);
    if (index == INTERVAL_NONE) return NULL;
    struct dwarf_unit *unit = &units->units[index];
    if (!unit->walked) walk_unit(units, unit);
    return unit;
}

struct dwarf_scope *dwarf_unit_find_scope(struct dwarf_unit *unit, uint64_t address) {
    uint32_t index = interval_map_find(&unit->by_address, address);
    return index == INTERVAL_NONE ? NULL : &unit->scopes[index];
}

bool dwarf_unit_find_line(struct dwarf_unit *unit, uint64_t address, const char **ret_file, int *ret_line) {
    Dwarf_Line *line = dwarf_getsrc_die(&unit->die, address);
    const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
    int number;
    if (!file || dwarf_lineno(line, &number) != 0) return false;
    *ret_file = file;
    *ret_line = number;
    return true;
}

static const char *text_of(Dwarf_Die *die, unsigned attribute) {
    Dwarf_Attribute memory;
    return dwarf_formstring(dwarf_attr_integrate(die, attribute, &memory));
}

static uint64_t number_of(Dwarf_Die *die, unsigned attribute) {
    Dwarf_Attribute memory;
    Dwarf_Word number;
    return dwarf_formudata(dwarf_attr(die, attribute, &memory), &number) == 0 ? number : 0;
}

static const char *call_file_of(struct dwarf_unit *unit, Dwarf_Die *die) {
    Dwarf_Files *files;
    if (!dwarf_hasattr(die, DW_AT_call_file) || dwarf_getsrcfiles(&unit->code_die, &files, NULL) != 0)
        return NULL;
    const char *file = dwarf_filesrc(files, number_of(die, DW_AT_call_file), NULL, NULL);
    return file && strcmp(file, "???") != 0 ? file : NULL; /* libdw's name for "no file" */
}

void dwarf_unit_describe(struct dwarf_unit *unit, struct dwarf_scope *scope) {
    if (scope->described) return;
    scope->described = true;
    scope->name = dwarf_diename(&scope->die);
    scope->linkage = text_of(&scope->die, DW_AT_linkage_name);
    if (!scope->linkage) scope->linkage = text_of(&scope->die, DW_AT_MIPS_linkage_name);
    if (dwarf_decl_line(&scope->die, &scope->line) != 0) scope->line = 0;
    if (scope->caller == SCOPE_NONE) return;
    scope->call_file = call_file_of(unit, &scope->die);
    scope->call_line = (int)number_of(&scope->die, DW_AT_call_line);
}

/* Enters the code of `die`, if there is any, under `value`. */
static bool add_ranges(
    const struct dwarf_units *units, struct interval_map *map, Dwarf_Die *die, uint32_t value) {
    Dwarf_Addr base, low, high;
    bool added = false;
    ptrdiff_t next = 0;
    while ((next = dwarf_ranges(die, next, &base, &low, &high)) > 0) {
        if (low >= high || low < units->code_low || low >= units->code_high) continue;
        interval_map_add(map, low, high, value);
        added = true;
    }
    return added;
}

/* Returns the scope's number, or SCOPE_NONE if it has no code. */
static uint32_t add_scope(
    struct dwarf_units *units, struct dwarf_unit *unit, Dwarf_Die *die, uint32_t caller) {
    if (!add_ranges(units, &unit->by_address, die, unit->scope_count)) return SCOPE_NONE;
    if (unit->scope_count == unit->scope_room) {
        unit->scope_room = unit->scope_room ? 2 * unit->scope_room : 64;
        unit->scopes = xrealloc(unit->scopes, unit->scope_room * sizeof *unit->scopes);
    }
    unit->scopes[unit->scope_count] = (struct dwarf_scope){.die = *die, .caller = caller};
    return unit->scope_count++;
}

/* Collects the functions below `parent`, which lies in the scope `caller`. */
static void walk_children(
    struct dwarf_units *units, struct dwarf_unit *unit, Dwarf_Die *parent, uint32_t caller, int nesting) {
    Dwarf_Die child;
    if (nesting > NESTING_MAX || dwarf_child(parent, &child) != 0) return;
    do {
        uint32_t scope = caller;
        switch (dwarf_tag(&child)) {
        case DW_TAG_subprogram:
            scope = add_scope(units, unit, &child, SCOPE_NONE);
            break;
        case DW_TAG_inlined_subroutine:
            scope = add_scope(units, unit, &child, caller);
            if (scope == SCOPE_NONE) continue; /* optimised away, and all that was inlined into it */
            break;
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
        case DW_TAG_enumeration_type:
        case DW_TAG_interface_type:
            break;
        default:
            continue;
        }
        if (dwarf_haschildren(&child)) walk_children(units, unit, &child, scope, nesting + 1);
    } while (dwarf_siblingof(&child, &child) == 0);
}

static void walk_unit(struct dwarf_units *units, struct dwarf_unit *unit) {
    unit->walked = true;
    unit->folder = text_of(&unit->die, DW_AT_comp_dir);
    walk_children(units, unit, &unit->code_die, SCOPE_NONE, 0);
    interval_map_seal(&unit->by_address);
}

void dwarf_units_read(struct dwarf_units *units, Dwarf *dwarf, uint64_t code_low, uint64_t code_high) {
    units->code_low = code_low;
    units->code_high = code_high;
    uint32_t room = 0;
    Dwarf_CU *cursor = NULL;
    Dwarf_Die die, split;
    uint8_t type;
    while (dwarf_get_units(dwarf, cursor, &cursor, NULL, &type, &die, &split) == 0) {
        if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
        if (!add_ranges(units, &units->by_address, &die, units->count)) continue;
        if (units->count == room) {
            room = room ? 2 * room : 64;
            units->units = xrealloc(units->units, room * sizeof *units->units);
        }
        bool is_split = type == DW_UT_skeleton && dwarf_cuoffset(&split) != (Dwarf_Off)-1;
        units->units[units->count++] = (struct dwarf_unit){.die = die, .code_die = is_split ? split : die};
    }
    interval_map_seal(&units->by_address);
}

void dwarf_units_clear(struct dwarf_units *units) {
    for (uint32_t i = 0; i < units->count; i++) {
        interval_map_clear(&units->units[i].by_address);
        free(units->units[i].scopes);
    }
    interval_map_clear(&units->by_address);
    free(units->units);
    *units = (struct dwarf_units){0};
}
