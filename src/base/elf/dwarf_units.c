#include "base/elf/dwarf_units.h"

#include "base/memory.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

/* DIEs that are nested deeper are ignored. No compiler nests as deep. */
#define NESTING_MAX 1000

static void list_functions(struct dwarf_unit *unit, struct interval_map *map, bool nested);
static void walk_function(struct dwarf_unit *unit, struct dwarf_function *function);
static const char *text_of(Dwarf_Die *die, unsigned attribute);

struct dwarf_unit *dwarf_units_find(struct dwarf_units *units, uint64_t address) {
    uint32_t index = interval_map_find(&units->by_address, address);
    if (index == INTERVAL_NONE) return NULL;
    struct dwarf_unit *unit = &units->units[index];
    if (!unit->opened) {
        unit->opened = true;
        unit->folder = text_of(&unit->die, DW_AT_comp_dir);
        if (die_reader_start(&unit->reader, &unit->code_die)) list_functions(unit, &unit->by_address, false);
    }
    return unit;
}

struct dwarf_scope *dwarf_unit_find_scope(struct dwarf_unit *unit, uint64_t address) {
    uint32_t index = interval_map_find(&unit->by_address, address);
    if (index == INTERVAL_NONE) {
        /* Rare, and slow: the whole unit is read. */
        if (!unit->listed_nested && unit->reader.end) list_functions(unit, &unit->nested_by_address, true);
        unit->listed_nested = true;
        index = interval_map_find(&unit->nested_by_address, address);
    }
    if (index == INTERVAL_NONE) return NULL;
    struct dwarf_function *function = &unit->functions[index];
    if (!function->walked) walk_function(unit, function);
    uint32_t scope = interval_map_find(&function->by_address, address);
    return scope == INTERVAL_NONE ? NULL : &unit->scopes[scope];
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

/* ---- names ---- */

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

static hashval_t hash_name(const void *name) {
    return htab_hash_pointer(((const struct dwarf_name *)name)->die);
}

static int same_name(const void *left, const void *right) {
    return ((const struct dwarf_name *)left)->die == ((const struct dwarf_name *)right)->die;
}

static struct dwarf_name *name_of(struct dwarf_units *units, Dwarf_Die *die) {
    struct dwarf_name key = {.die = die->addr};
    void **slot = htab_find_slot(units->names, &key, INSERT);
    if (!*slot) {
        struct dwarf_name *name = *slot = memory_allocate(sizeof *name);
        *name = key;
        name->name = dwarf_diename(die);
        name->linkage = text_of(die, DW_AT_linkage_name);
        if (!name->linkage) name->linkage = text_of(die, DW_AT_MIPS_linkage_name);
        if (dwarf_decl_line(die, &name->line) != 0) name->line = 0;
    }
    return *slot;
}

void dwarf_unit_describe(struct dwarf_unit *unit, struct dwarf_scope *scope) {
    if (scope->name) return;
    Dwarf_Die die = {.addr = scope->die, .cu = unit->code_die.cu}, origin;
    Dwarf_Attribute memory;
    bool is_inlined = scope->caller != SCOPE_NONE;
    if (is_inlined && dwarf_formref_die(dwarf_attr(&die, DW_AT_abstract_origin, &memory), &origin))
        scope->name = name_of(unit->all, &origin);
    else
        scope->name = name_of(unit->all, &die);
    if (!is_inlined) return;
    scope->call_file = call_file_of(unit, &die);
    scope->call_line = (int)number_of(&die, DW_AT_call_line);
}

/* ---- code ---- */

static bool is_address(unsigned form) {
    return form == DW_FORM_addr || (form >= DW_FORM_addrx1 && form <= DW_FORM_addrx4) ||
           form == DW_FORM_addrx || form == DW_FORM_GNU_addr_index;
}

/* Whether the code of the DIE is one range, [*ret_low, *ret_high): the most frequent case, which is read without
 * libdw's general function. */
static bool is_one_piece(struct passed_die *die, uint64_t *ret_low, uint64_t *ret_high) {
    if (die->has_ranges || !is_address(die->low_pc.form) || dwarf_formaddr(&die->low_pc, ret_low) != 0)
        return false;
    switch (die->high_pc.form) {
    case DW_FORM_data1:
    case DW_FORM_data2:
    case DW_FORM_data4:
    case DW_FORM_data8:
    case DW_FORM_udata: {
        Dwarf_Word size;
        if (dwarf_formudata(&die->high_pc, &size) != 0) return false;
        *ret_high = *ret_low + size;
        return true;
    }
    default:
        return is_address(die->high_pc.form) && dwarf_formaddr(&die->high_pc, ret_high) == 0;
    }
}

static bool add_range(
    const struct dwarf_units *units, struct interval_map *map, uint64_t low, uint64_t high, uint32_t value) {
    if (low >= high || low < units->code_low || low >= units->code_high) return false;
    interval_map_add(map, low, high, value);
    return true;
}

static bool add_ranges(
    const struct dwarf_units *units, struct interval_map *map, Dwarf_Die *die, uint32_t value) {
    Dwarf_Addr base, low, high;
    bool added = false;
    ptrdiff_t next = 0;
    while ((next = dwarf_ranges(die, next, &base, &low, &high)) > 0)
        added |= add_range(units, map, low, high, value);
    return added;
}

/* Adds the address ranges of the DIE's code to `map`, with `value`. False if there is no code. */
static bool add_code(
    const struct dwarf_units *units, struct interval_map *map, struct passed_die *die, uint32_t value) {
    uint64_t low, high;
    if (!die->has_ranges && !die->high_pc.code) return false;
    if (is_one_piece(die, &low, &high)) return add_range(units, map, low, high, value);
    return add_ranges(units, map, &die->die, value);
}

static void add_function(struct dwarf_unit *unit, struct interval_map *map, struct passed_die *die) {
    if (!add_code(unit->all, map, die, unit->function_count)) return;
    if (unit->function_count == unit->function_room) {
        unit->function_room = unit->function_room ? 2 * unit->function_room : 64;
        unit->functions = memory_reallocate(unit->functions, unit->function_room * sizeof *unit->functions);
    }
    unit->functions[unit->function_count++] = (struct dwarf_function){.die = die->die.addr};
}

/* Adds the functions of the unit to `map`. Compilers put most functions at the top of the unit or into
 * namespaces. Functions that are deeper (methods of local types, nested functions) are added only with `nested`. */
static void list_functions(struct dwarf_unit *unit, struct interval_map *map, bool nested) {
    struct die_reader *reader = &unit->reader;
    struct passed_die die;
    size_t depth = 0;
    die_reader_go_to(reader, &unit->code_die);
    while (die_reader_next(reader, &die)) {
        bool enter = depth == 0 || nested || die.tag == DW_TAG_namespace || die.tag == DW_TAG_module;
        if (die.tag == DW_TAG_subprogram) add_function(unit, map, &die);
        if (!die.tag)
            depth--;
        else if (enter)
            depth += die.has_children;
        else if (!die_reader_pass_children(reader, &die))
            break;
        if (depth == 0) break;
    }
    interval_map_seal(map);
}

/* Returns the scope's number, or SCOPE_NONE if it has no code. */
static uint32_t add_scope(
    struct dwarf_unit *unit, struct dwarf_function *function, struct passed_die *die, uint32_t caller) {
    if (!add_code(unit->all, &function->by_address, die, unit->scope_count)) return SCOPE_NONE;
    if (unit->scope_count == unit->scope_room) {
        unit->scope_room = unit->scope_room ? 2 * unit->scope_room : 64;
        unit->scopes = memory_reallocate(unit->scopes, unit->scope_room * sizeof *unit->scopes);
    }
    unit->scopes[unit->scope_count] = (struct dwarf_scope){.die = die->die.addr, .caller = caller};
    return unit->scope_count++;
}

/* Lists the scopes of a function: itself, the calls that were inlined into it, and those that were inlined into
 * these. */
static void walk_function(struct dwarf_unit *unit, struct dwarf_function *function) {
    struct die_reader *reader = &unit->reader;
    struct passed_die die;
    Dwarf_Die start = {.addr = function->die};
    uint32_t around[NESTING_MAX]; /* for each level of nesting, the scope that its DIEs are in */
    size_t depth = 0;
    die_reader_go_to(reader, &start);
    function->walked = true;
    while (die_reader_next(reader, &die)) {
        uint32_t scope = SCOPE_NONE;
        if (depth == 0)
            scope = add_scope(unit, function, &die, SCOPE_NONE);
        else if (die.tag == DW_TAG_inlined_subroutine)
            scope = add_scope(unit, function, &die, around[depth - 1]);
        else if (die.tag == DW_TAG_lexical_block || die.tag == DW_TAG_try_block ||
                 die.tag == DW_TAG_catch_block)
            scope = around[depth - 1];
        if (!die.tag)
            depth--;
        else if (scope == SCOPE_NONE ||
                 depth == NESTING_MAX) { /* no scope, or one without code: children are skipped */
            if (!die_reader_pass_children(reader, &die)) break;
        } else if (die.has_children)
            around[depth++] = scope;
        if (depth == 0) break;
    }
    interval_map_seal(&function->by_address);
}

void dwarf_units_read(struct dwarf_units *units, Dwarf *dwarf, uint64_t code_low, uint64_t code_high) {
    units->code_low = code_low;
    units->code_high = code_high;
    units->names = htab_create(1024, hash_name, same_name, free);
    uint32_t room = 0;
    Dwarf_CU *cursor = NULL;
    Dwarf_Die die, split;
    uint8_t type;
    while (dwarf_get_units(dwarf, cursor, &cursor, NULL, &type, &die, &split) == 0) {
        if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
        if (!add_ranges(units, &units->by_address, &die, units->count)) continue;
        if (units->count == room) {
            room = room ? 2 * room : 64;
            units->units = memory_reallocate(units->units, room * sizeof *units->units);
        }
        bool is_split = type == DW_UT_skeleton && dwarf_cuoffset(&split) != (Dwarf_Off)-1;
        units->lacks_parts |= type == DW_UT_skeleton && !is_split;
        units->units[units->count++] =
            (struct dwarf_unit){.all = units, .die = die, .code_die = is_split ? split : die};
    }
    interval_map_seal(&units->by_address);
}

void dwarf_units_clear(struct dwarf_units *units) {
    for (uint32_t i = 0; i < units->count; i++) {
        struct dwarf_unit *unit = &units->units[i];
        for (uint32_t k = 0; k < unit->function_count; k++)
            interval_map_clear(&unit->functions[k].by_address);
        interval_map_clear(&unit->by_address);
        interval_map_clear(&unit->nested_by_address);
        die_reader_end(&unit->reader);
        free(unit->functions);
        free(unit->scopes);
    }
    interval_map_clear(&units->by_address);
    free(units->units);
    if (units->names) htab_delete(units->names);
    *units = (struct dwarf_units){0};
}
