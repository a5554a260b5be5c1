#include "attach/bpf/rust_inlined.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "attach/bpf/allocator_functions.h"
#include "base/memory.h"

/* The linkage name of the allocator function that this DIE describes for its inlined calls, or NULL if it describes
 * anything else. */
static const char *name_of_inlined(Dwarf_Die *die) {
    Dwarf_Attribute memory;
    if (!dwarf_hasattr(die, DW_AT_inline)) return NULL;
    const char *name = dwarf_formstring(dwarf_attr(die, DW_AT_linkage_name, &memory));
    const struct function_kind *kind = name ? allocator_functions_find(name) : NULL;
    return kind && kind->family == FAMILY_RUST ? name : NULL;
}

static void search_unit(const struct dwarf_unit *unit, struct rust_inlined *inlined) {
    struct die_reader reader;
    struct passed_die die;
    bool is_read = die_reader_start(&reader, &unit->code_die);
    while (is_read && die_reader_next(&reader, &die)) {
        if (die.tag != DW_TAG_subprogram) continue;
        const char *name = die.low_pc.code || die.has_ranges ? NULL : name_of_inlined(&die.die);
        if (name) {
            inlined->names = memory_reallocate(inlined->names, (inlined->count + 1) * sizeof *inlined->names);
            inlined->names[inlined->count++] = name;
        }
        is_read = !die.has_children || die_reader_pass_children(&reader, &die);
    }
    die_reader_end(&reader);
}

void rust_inlined_find(struct elf_code *elf, struct rust_inlined *ret_inlined) {
    const struct dwarf_units *units = elf_code_debug(elf);
    *ret_inlined = (struct rust_inlined){0};
    for (uint32_t i = 0; i < units->count; i++) search_unit(&units->units[i], ret_inlined);
}

void rust_inlined_clear(struct rust_inlined *inlined) {
    free(inlined->names);
}

bool rust_inlined_has(const struct rust_inlined *inlined, const char *name) {
    /* ThinLTO appends ".llvm.NUMBER" to the name of a local function that it exports from one unit to another. */
    const char *suffix = strstr(name, ".llvm.");
    size_t length = suffix ? (size_t)(suffix - name) : strlen(name);
    for (size_t i = 0; i < inlined->count; i++)
        if (strlen(inlined->names[i]) == length && strncmp(inlined->names[i], name, length) == 0) return true;
    return false;
}
