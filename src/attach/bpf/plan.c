#include "attach/bpf/plan.h"

#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "attach/bpf/cookie.h"
#include "attach/bpf/plan_draft.h"
#include "base/memory.h"

static void add_note(struct plan_note **notes, size_t *count, char *what, char *why) {
    *notes = memory_reallocate(*notes, (*count + 1) * sizeof **notes);
    (*notes)[(*count)++] = (struct plan_note){what, why, false};
}

void plan_add_refusal(struct plan *plan, char *what, char *why) {
    add_note(&plan->refused, &plan->refused_count, what, why);
}

void plan_add_warning(struct plan *plan, char *what, char *why) {
    add_note(&plan->warnings, &plan->warning_count, what, why);
}

/* ---- layers: the allocators whose functions are probed ---- */

static const char *family_name(enum function_family family) {
    switch (family) {
    case FAMILY_OPERATORS:
        return "C++ operators of its own";
    case FAMILY_JEMALLOC:
        return "jemalloc";
    case FAMILY_MIMALLOC:
        return "mimalloc";
    case FAMILY_TCMALLOC:
        return "tcmalloc";
    case FAMILY_RUST:
        return "Rust's global allocator";
    case FAMILY_LIBC:
    case FAMILY_SYSTEM:
        break;
    }
    return "malloc";
}

/* The name of the allocator in a module that serves malloc, from functions that only that allocator has. */
static const char *server_name(const struct plan_module *module) {
    static const struct {
        const char *function, *name;
    } signs[] = {{"mallocx", "jemalloc"}, {"mi_malloc", "mimalloc"}, {"tc_malloc", "tcmalloc"},
        {"__asan_init", "AddressSanitizer"}, {"malloc_trim", "glibc"}};
    if (strncmp(plan_modules_name(module), "libmalloscope", 13) == 0) return "malloscope's recorder";
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (plan_modules_find_function(module, signs[i].function)) return signs[i].name;
    bool is_musl = module->file->is_program ? plan_modules_find_function(module, "__libc_malloc_impl") != NULL
                                            : strstr(module->file->path, "musl") != NULL;
    if (is_musl) return "musl";
    return "a malloc of its own";
}

static char *server_why(const struct plan_module *module) {
    if (module->bound)
        return memory_format_text(
            "malloc of %zu module%s is bound to it", module->bound, module->bound == 1 ? "" : "s");
    if (module->file->is_program) return memory_copy_text("its malloc is linked into the program");
    return memory_copy_text(
        "it comes first in the order of search; the bindings themselves could not be read");
}

static size_t add_layer(struct plan *plan, char *name, char *why) {
    for (size_t i = 0; i < plan->layer_count; i++) {
        if (strcmp(plan->layers[i].name, name) != 0) continue;
        free(name);
        free(why);
        return i;
    }
    plan->layers = memory_reallocate(plan->layers, (plan->layer_count + 1) * sizeof *plan->layers);
    plan->layers[plan->layer_count] = (struct plan_layer){name, why};
    return plan->layer_count++;
}

static size_t layer_of(const struct plan_draft *draft, const struct candidate *candidate) {
    const struct plan_module *module = &draft->modules[candidate->module];
    enum function_family family = candidate->kind->family;
    if (family == FAMILY_SYSTEM) return SIZE_MAX;
    if (module->serves_malloc && family != FAMILY_RUST)
        return add_layer(draft->plan,
            memory_format_text("%s (%s)", server_name(module), plan_modules_name(module)),
            server_why(module));
    return add_layer(draft->plan,
        memory_format_text("%s (%s)", family_name(family), plan_modules_name(module)),
        memory_copy_text(family == FAMILY_RUST
                             ? "it does not hand everything on to an allocator that is known"
                             : "its functions are in the file"));
}

/* ---- the probes ---- */

/* The place in the kernel's struct pt_regs of the register with an x86 number. */
static uint64_t register_slot(signed char number) {
    static const uint8_t slots[16] = {10, 11, 12, 5, 19, 4, 13, 14, 9, 8, 7, 6, 3, 2, 1, 0};
    return number < 0 ? COOKIE_NONE : slots[number];
}

/* The addresses [*ret_low, *ret_high) of glibc's allocator: its functions lie together, because they are compiled
 * from one source file. An empty range for any other allocator. */
static void allocator_code(const struct plan_module *module, uint64_t *ret_low, uint64_t *ret_high) {
    static const char *const parts[] = {"malloc", "calloc", "realloc", "free", "memalign", "valloc",
        "pvalloc", "posix_memalign", "malloc_trim"};
    *ret_low = *ret_high = 0;
    if (strcmp(server_name(module), "glibc") != 0) return;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const struct elf_function *function = plan_modules_find_function(module, parts[i]);
        if (!function) continue;
        if (!*ret_high || function->address < *ret_low) *ret_low = function->address;
        if (function->address + function->size > *ret_high) *ret_high = function->address + function->size;
    }
}

static uint64_t make_cookie(
    const struct plan_module *module, const struct candidate *candidate, const struct probe_point *point) {
    uint64_t cookie = register_slot(point->size) << COOKIE_SIZE |
                      register_slot(point->factor) << COOKIE_COUNT | register_slot(point->old) << COOKIE_OLD |
                      register_slot(point->out) << COOKIE_OUT;
    if (candidate->nests) cookie |= COOKIE_NESTS;
    if (candidate->kind->throws) cookie |= COOKIE_THROWS;
    uint64_t low, high;
    allocator_code(module, &low, &high);
    if (candidate->kind->role == ROLE_FREE && low <= point->address && point->address < high &&
        high - low <= COOKIE_REACH_MAX)
        cookie |= (point->address - low) << COOKIE_BEFORE | (high - point->address) << COOKIE_BEHIND;
    return cookie;
}

static bool has_probe(const struct plan *plan, const struct target_file *file, uint64_t offset) {
    for (size_t i = 0; i < plan->probe_count; i++)
        if (plan->probes[i].device == file->device && plan->probes[i].inode == file->inode &&
            plan->probes[i].file_offset == offset)
            return true;
    return false;
}

static void add_probe(struct plan_draft *draft, const struct candidate *candidate) {
    struct plan *plan = draft->plan;
    const struct plan_module *module = &draft->modules[candidate->module];
    struct probe_point point;
    if (!probe_point_find(module->elf, candidate->function, candidate->kind, &point)) return;
    uint64_t offset = elf_code_offset(module->elf, point.address);
    size_t layer = layer_of(draft, candidate);
    if (has_probe(plan, module->file, offset)) return;
    plan->probes = memory_reallocate(plan->probes, (plan->probe_count + 1) * sizeof *plan->probes);
    plan->probes[plan->probe_count++] = (struct plan_probe){
        .path = memory_copy_text(module->file->open_path),
        .module = memory_copy_text(module->file->path),
        .function = plan_candidates_name(candidate, DMGL_PARAMS | DMGL_ANSI),
        .role = candidate->kind->role,
        .file_offset = offset,
        .distance = point.address - candidate->function->address,
        .catches_return = candidate->kind->role == ROLE_ALLOCATE || candidate->kind->role == ROLE_RESIZE,
        .nests = candidate->nests,
        .throws = candidate->kind->throws,
        .cookie = make_cookie(module, candidate, &point),
        .point = point,
        .layer = layer,
        .device = module->file->device,
        .inode = module->file->inode,
    };
}

/* ---- making, extending and copying a plan ---- */

static void remember_files(struct plan_draft *draft) {
    struct plan *plan = draft->plan;
    plan->known_count = draft->target.file_count;
    plan->known_files =
        memory_reallocate(plan->known_files, (2 * plan->known_count + 1) * sizeof *plan->known_files);
    for (size_t i = 0; i < plan->known_count; i++) {
        plan->known_files[2 * i] = draft->target.files[i].device;
        plan->known_files[2 * i + 1] = draft->target.files[i].inode;
    }
}

static bool has_new_files(const struct plan_draft *draft) {
    const struct plan *plan = draft->plan;
    for (size_t i = 0; i < draft->target.file_count; i++) {
        const struct target_file *file = &draft->target.files[i];
        bool known = false;
        for (size_t k = 0; k < plan->known_count && !known; k++)
            known = plan->known_files[2 * k] == file->device && plan->known_files[2 * k + 1] == file->inode;
        if (!known) return true;
    }
    return false;
}

static void clear_notes(struct plan_note **notes, size_t *count) {
    for (size_t i = 0; i < *count; i++) {
        free((*notes)[i].what);
        free((*notes)[i].why);
    }
    free(*notes);
    *notes = NULL;
    *count = 0;
}

static void close_draft(struct plan_draft *draft) {
    for (size_t i = 0; i < draft->module_count; i++) elf_code_close(draft->modules[i].elf);
    free(draft->modules);
    free(draft->candidates);
    target_close(&draft->target);
}

static int build(struct plan_draft *draft, struct problem *problem) {
    struct plan *plan = draft->plan;
    clear_notes(&plan->refused, &plan->refused_count);
    clear_notes(&plan->warnings, &plan->warning_count);
    int r = plan_modules_open(draft, problem);
    if (r < 0) return r;
    plan_modules_find_servers(draft);
    plan_candidates_find(draft);
    bool allocates = false, throws = false;
    for (size_t i = 0; i < draft->candidate_count; i++) {
        const struct candidate *candidate = &draft->candidates[i];
        if (candidate->state != STATE_KEPT) continue;
        if (candidate->kind->role == ROLE_ALLOCATE) allocates = true;
        if (candidate->kind->throws) throws = true;
    }
    for (size_t i = 0; i < draft->candidate_count; i++)
        if (draft->candidates[i].state == STATE_KEPT &&
            (draft->candidates[i].kind->role != ROLE_UNWIND || throws))
            add_probe(draft, &draft->candidates[i]);
    plan_warnings_find(draft, allocates);
    if (!allocates) return plan_warnings_explain_nothing(draft, problem);
    remember_files(draft);
    return 0;
}

int plan_make(pid_t pid, struct plan **ret_plan, struct problem *problem) {
    struct plan_draft draft = {0};
    int r = target_open(pid, &draft.target, problem);
    if (r < 0) return r;
    struct plan *plan = draft.plan = memory_allocate(sizeof *plan);
    plan->pid = pid;
    plan->program = memory_copy_text(draft.target.name);
    r = build(&draft, problem);
    close_draft(&draft);
    if (r < 0) {
        plan_free(plan);
        return r;
    }
    *ret_plan = plan;
    return 0;
}

/* `path` with /proc/PARENT/ replaced by /proc/CHILD/, if it begins so. */
static char *path_of_child(const char *path, pid_t parent, pid_t child) {
    char *prefix = memory_format_text("/proc/%d/", (int)parent);
    bool has_prefix = strncmp(path, prefix, strlen(prefix)) == 0;
    char *result = has_prefix ? memory_format_text("/proc/%d/%s", (int)child, path + strlen(prefix))
                              : memory_copy_text(path);
    free(prefix);
    return result;
}

struct plan *plan_of_child(const struct plan *plan, pid_t child) {
    struct plan *copy = memory_allocate(sizeof *copy);
    copy->pid = child;
    copy->program = memory_copy_text(plan->program);
    for (size_t i = 0; i < plan->layer_count; i++)
        add_layer(copy, memory_copy_text(plan->layers[i].name), memory_copy_text(plan->layers[i].why));
    for (size_t i = 0; i < plan->refused_count; i++)
        plan_add_refusal(
            copy, memory_copy_text(plan->refused[i].what), memory_copy_text(plan->refused[i].why));
    for (size_t i = 0; i < plan->warning_count; i++) {
        plan_warn(copy, plan->warnings[i].what, plan->warnings[i].why);
        copy->warnings[i].is_doubt = plan->warnings[i].is_doubt;
    }
    copy->probes = memory_copy(plan->probes, plan->probe_count * sizeof *plan->probes);
    copy->probe_count = plan->probe_count;
    for (size_t i = 0; i < copy->probe_count; i++) {
        copy->probes[i].path = path_of_child(plan->probes[i].path, plan->pid, child);
        copy->probes[i].module = memory_copy_text(plan->probes[i].module);
        copy->probes[i].function = memory_copy_text(plan->probes[i].function);
    }
    copy->known_files = memory_copy(plan->known_files, 2 * plan->known_count * sizeof *plan->known_files);
    copy->known_count = plan->known_count;
    return copy;
}

int plan_extend(struct plan *plan, struct problem *problem) {
    struct plan_draft draft = {.plan = plan};
    int r = target_open(plan->pid, &draft.target, problem);
    if (r < 0) return r;
    if (has_new_files(&draft)) r = build(&draft, problem);
    close_draft(&draft);
    return r;
}

bool plan_misses(const struct plan *plan) {
    for (size_t i = 0; i < plan->warning_count; i++)
        if (!plan->warnings[i].is_doubt) return true;
    return false;
}

bool plan_throws(const struct plan *plan) {
    for (size_t i = 0; i < plan->probe_count; i++)
        if (plan->probes[i].throws) return true;
    return false;
}

void plan_warn(struct plan *plan, const char *what, const char *why) {
    plan_add_warning(plan, memory_copy_text(what), memory_copy_text(why));
}

void plan_free(struct plan *plan) {
    if (!plan) return;
    for (size_t i = 0; i < plan->probe_count; i++) {
        free(plan->probes[i].path);
        free(plan->probes[i].module);
        free(plan->probes[i].function);
    }
    for (size_t i = 0; i < plan->layer_count; i++) {
        free(plan->layers[i].name);
        free(plan->layers[i].why);
    }
    clear_notes(&plan->refused, &plan->refused_count);
    clear_notes(&plan->warnings, &plan->warning_count);
    free(plan->probes);
    free(plan->layers);
    free(plan->known_files);
    free(plan->program);
    free(plan);
}
