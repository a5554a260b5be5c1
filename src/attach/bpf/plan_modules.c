#include "attach/bpf/plan_steps.h"

#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

const char *plan_module_name(const struct plan_module *module) {
    return lbasename(module->file->path);
}

int plan_open_modules(struct plan_builder *builder, struct problem *problem) {
    builder->modules = xcalloc(builder->target.file_count, sizeof *builder->modules);
    char *root = text_format("/proc/%d/root", (int)builder->target.pid);
    int r = 0;
    for (size_t i = 0; i < builder->target.file_count && r >= 0; i++) {
        const struct target_file *file = &builder->target.files[i];
        struct plan_module *module = &builder->modules[builder->module_count];
        struct problem trouble = {.what = "it was deleted, and /proc/PID/map_files may not be read"};
        if (!file->open_path ||
            elf_code_open(file->open_path, root, file->is_program, &module->image, &trouble) < 0) {
            plan_warn_text(
                builder->plan, xstrdup(file->path), text_format("cannot be looked at: %s", trouble.what));
            continue;
        }
        module->file = file;
        builder->module_count++;
        if (file->is_program && !elf_code_is_64_bit(module->image))
            r = problem_set(problem, PROBLEM_FAILURE,
                "attach is for 64-bit x86 programs; its size over time can be recorded: malloscope attach "
                "--via "
                "smaps",
                "process %d (%s) is not a 64-bit x86 program", (int)builder->target.pid,
                builder->target.name);
    }
    free(root);
    return r;
}

const struct elf_function *plan_module_find(const struct plan_module *module, const char *name) {
    size_t count;
    const struct elf_function *functions = elf_code_functions(module->image, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(functions[i].name, name) == 0 && functions[i].address) return &functions[i];
    return NULL;
}

/* ---- who serves malloc ---- */

/* The module whose malloc lies at this address of the program. */
static struct plan_module *owner_of_malloc(struct plan_builder *builder, uint64_t address) {
    uint64_t offset;
    const struct target_file *file = target_find(&builder->target, address, &offset);
    for (size_t i = 0; file && i < builder->module_count; i++) {
        struct plan_module *module = &builder->modules[i];
        if (module->file != file) continue;
        const struct elf_function *function = plan_module_find(module, "malloc");
        /* Else it is a stub that will look malloc up when it is first called. */
        return function && elf_code_offset(module->image, function->address) == offset ? module : NULL;
    }
    return NULL;
}

/* What the dynamic linker has put into the modules' slots for malloc. */
static void read_bindings(struct plan_builder *builder) {
    for (size_t i = 0; i < builder->module_count; i++) {
        const struct plan_module *module = &builder->modules[i];
        size_t count;
        const struct image_slot *slots = elf_code_slots(module->image, &count);
        for (size_t k = 0; k < count; k++) {
            if (!slots[k].name || strcmp(slots[k].name, "malloc") != 0) continue;
            uint64_t place = target_address(module->file, elf_code_offset(module->image, slots[k].address)),
                     word;
            if (!place || !target_read(&builder->target, place, &word)) continue;
            struct plan_module *owner = owner_of_malloc(builder, word);
            if (!owner) continue;
            owner->serves_malloc = builder->bindings_are_known = true;
            owner->bound++;
            break;
        }
    }
}

static bool is_libc(const struct plan_module *module) {
    return strncmp(plan_module_name(module), "libc.", 5) == 0 ||
           strncmp(plan_module_name(module), "libc-", 5) == 0 || strstr(plan_module_name(module), "ld-musl");
}

static bool exports_malloc(const struct plan_module *module) {
    size_t count;
    const struct elf_function *functions = elf_code_functions(module->image, &count);
    for (size_t i = 0; i < count; i++)
        if (functions[i].is_exported && strcmp(functions[i].name, "malloc") == 0) return true;
    return false;
}

/* Where nothing has been bound yet, or memory may not be read: as the dynamic linker would search, the
 * program first, the C library last. */
static void guess_bindings(struct plan_builder *builder) {
    struct plan_module *best = NULL;
    for (size_t i = 0; i < builder->module_count; i++) {
        struct plan_module *module = &builder->modules[i];
        if (strncmp(plan_module_name(module), "ld-linux", 8) == 0 || !exports_malloc(module)) continue;
        if (!best || module->file->is_program || (is_libc(best) && !best->file->is_program)) best = module;
        if (best->file->is_program) break;
    }
    if (best) best->serves_malloc = true;
}

void plan_find_servers(struct plan_builder *builder) {
    read_bindings(builder);
    if (!builder->bindings_are_known) guess_bindings(builder);
    /* A malloc inside the program serves it without any slot: static programs, allocators linked in. */
    for (size_t i = 0; i < builder->module_count; i++)
        if (builder->modules[i].file->is_program && plan_module_find(&builder->modules[i], "malloc"))
            builder->modules[i].serves_malloc = true;
}

void plan_close(struct plan_builder *builder) {
    for (size_t i = 0; i < builder->module_count; i++) elf_code_close(builder->modules[i].image);
    free(builder->modules);
    free(builder->candidates);
    target_close(&builder->target);
}
