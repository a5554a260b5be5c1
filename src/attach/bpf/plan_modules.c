#include "attach/bpf/plan_draft.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

const char *plan_modules_name(const struct plan_module *module) {
    return lbasename(module->file->path);
}

int plan_modules_open(struct plan_draft *draft, struct problem *problem) {
    draft->modules = memory_allocate_array(draft->target.file_count, sizeof *draft->modules);
    char *root = memory_format_text("/proc/%d/root", (int)draft->target.pid);
    int r = 0;
    for (size_t i = 0; i < draft->target.file_count && r >= 0; i++) {
        const struct target_file *file = &draft->target.files[i];
        struct plan_module *module = &draft->modules[draft->module_count];
        struct problem trouble = {.what = "it was deleted, and /proc/PID/map_files may not be read"};
        if (!file->open_path ||
            elf_code_open(file->open_path, root, file->is_program, &module->elf, &trouble) < 0) {
            plan_add_warning(draft->plan, memory_copy_text(file->path),
                memory_format_text("cannot be looked at: %s", trouble.what));
            continue;
        }
        module->file = file;
        draft->module_count++;
        if (file->is_program && !elf_code_is_64_bit(module->elf))
            r = problem_set(problem, PROBLEM_FAILURE,
                "attach is for 64-bit x86 programs; its size over time can be recorded: "
                "malloscope attach --via smaps",
                "process %d (%s) is not a 64-bit x86 program", (int)draft->target.pid, draft->target.name);
    }
    free(root);
    return r;
}

const struct elf_function *plan_modules_find_function(const struct plan_module *module, const char *name) {
    size_t count;
    const struct elf_function *functions = elf_code_functions(module->elf, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(functions[i].name, name) == 0 && functions[i].address) return &functions[i];
    return NULL;
}

/* ---- which module serves malloc ---- */

/* The module whose malloc lies at this address of the program, or NULL. */
static struct plan_module *owner_of_malloc(struct plan_draft *draft, uint64_t address) {
    uint64_t offset;
    const struct target_file *file = target_find(&draft->target, address, &offset);
    for (size_t i = 0; file && i < draft->module_count; i++) {
        struct plan_module *module = &draft->modules[i];
        if (module->file != file) continue;
        const struct elf_function *function = plan_modules_find_function(module, "malloc");
        /* A slot that was not used yet holds the address of a stub, which looks malloc up at the first call. */
        return function && elf_code_offset(module->elf, function->address) == offset ? module : NULL;
    }
    return NULL;
}

/* Reads from the program's memory what the dynamic linker has put into each module's slot for malloc. */
static void read_bindings(struct plan_draft *draft) {
    for (size_t i = 0; i < draft->module_count; i++) {
        const struct plan_module *module = &draft->modules[i];
        size_t count;
        const struct elf_slot *slots = elf_code_slots(module->elf, &count);
        for (size_t k = 0; k < count; k++) {
            if (!slots[k].name || strcmp(slots[k].name, "malloc") != 0) continue;
            uint64_t place = target_address(module->file, elf_code_offset(module->elf, slots[k].address)),
                     word;
            if (!place || !target_read(&draft->target, place, &word)) continue;
            struct plan_module *owner = owner_of_malloc(draft, word);
            if (!owner) continue;
            owner->serves_malloc = draft->bindings_are_known = true;
            owner->bound++;
            break;
        }
    }
}

static bool is_libc(const struct plan_module *module) {
    return strncmp(plan_modules_name(module), "libc.", 5) == 0 ||
           strncmp(plan_modules_name(module), "libc-", 5) == 0 ||
           strstr(plan_modules_name(module), "ld-musl");
}

static bool exports_malloc(const struct plan_module *module) {
    size_t count;
    const struct elf_function *functions = elf_code_functions(module->elf, &count);
    for (size_t i = 0; i < count; i++)
        if (functions[i].is_exported && strcmp(functions[i].name, "malloc") == 0) return true;
    return false;
}

/* For a program in which no slot has been bound yet, or whose memory may not be read: searches for malloc in the
 * order of the dynamic linker, in the program first and in the C library last. */
static void guess_bindings(struct plan_draft *draft) {
    struct plan_module *best = NULL;
    for (size_t i = 0; i < draft->module_count; i++) {
        struct plan_module *module = &draft->modules[i];
        if (strncmp(plan_modules_name(module), "ld-linux", 8) == 0 || !exports_malloc(module)) continue;
        if (!best || module->file->is_program || (is_libc(best) && !best->file->is_program)) best = module;
        if (best->file->is_program) break;
    }
    if (best) best->serves_malloc = true;
}

void plan_modules_find_servers(struct plan_draft *draft) {
    read_bindings(draft);
    if (!draft->bindings_are_known) guess_bindings(draft);
    /* A static program, or one with an allocator linked in, calls the malloc in its own file without any slot. */
    for (size_t i = 0; i < draft->module_count; i++)
        if (draft->modules[i].file->is_program && plan_modules_find_function(&draft->modules[i], "malloc"))
            draft->modules[i].serves_malloc = true;
}
