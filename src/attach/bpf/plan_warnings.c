#include "attach/bpf/plan_draft.h"

#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "attach/bpf/instruction.h"
#include "attach/bpf/rust_inlined.h"
#include "base/memory.h"

static const struct plan_module *find_program(const struct plan_draft *draft) {
    for (size_t i = 0; i < draft->module_count; i++)
        if (draft->modules[i].file->is_program) return &draft->modules[i];
    return NULL;
}

/* ---- allocators without names ---- */

static bool has_family(const struct plan_draft *draft, enum function_family family) {
    for (size_t i = 0; i < draft->candidate_count; i++)
        if (draft->candidates[i].kind->family == family && draft->candidates[i].state != STATE_REFUSED)
            return true;
    return false;
}

/* Whether the program imports or contains a function that allocates. */
static bool calls_an_allocator(const struct plan_draft *draft, const struct plan_module *program) {
    size_t count;
    const struct elf_slot *slots = elf_code_slots(program->elf, &count);
    for (size_t i = 0; i < count; i++) {
        const struct function_kind *kind = slots[i].name ? allocator_functions_find(slots[i].name) : NULL;
        if (kind && kind->role <= ROLE_RESIZE) return true;
    }
    for (size_t i = 0; i < draft->candidate_count; i++)
        if (&draft->modules[draft->candidates[i].module] == program &&
            draft->candidates[i].state != STATE_REFUSED && draft->candidates[i].kind->role <= ROLE_RESIZE)
            return true;
    return false;
}

/* Known allocators leave texts in a stripped program by which they can be recognised, but not probed. */
static void warn_of_hidden_allocators(struct plan_draft *draft, const struct plan_module *program) {
    static const struct {
        enum function_family family;
        const char *text, *name;
    } signs[] = {{FAMILY_JEMALLOC, "<jemalloc>: ", "jemalloc"}, {FAMILY_MIMALLOC, "mimalloc: ", "mimalloc"},
        {FAMILY_TCMALLOC, "TCMALLOC_", "tcmalloc"}};
    struct plan *plan = draft->plan;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (!elf_code_has_symbols(program->elf) && !has_family(draft, signs[i].family) &&
            elf_code_has_text(program->elf, signs[i].text))
            plan_add_warning(plan, memory_copy_text(plan_modules_name(program)),
                memory_format_text(
                    "holds %s, but its names were stripped: what that allocates is not seen", signs[i].name));
    if (elf_code_has_section(program->elf, ".go.buildinfo"))
        plan_add_warning(plan, memory_copy_text(plan_modules_name(program)),
            memory_copy_text("is a Go program: Go's own heap is not seen, only what its C parts allocate"));
}

/* ---- Rust ---- */

static const char remedy[] = "put #[inline(never)] on alloc, dealloc and realloc of the #[global_allocator]";

/* Whether the function returns at once. The compiler leaves out calls of a function that it knows to do nothing. */
static bool does_nothing(const struct plan_draft *draft, const struct candidate *candidate) {
    size_t size;
    const uint8_t *code =
        elf_code_bytes(draft->modules[candidate->module].elf, candidate->function->address, &size);
    return code && instruction_decode(code, size, candidate->function->address).kind == INSTRUCTION_RETURN;
}

/* Whether a Rust function of this role in the module is probed, or calls one that is probed. */
static bool has_rust_role(const struct plan_draft *draft, size_t module, enum function_role role) {
    for (size_t i = 0; i < draft->candidate_count; i++) {
        const struct candidate *candidate = &draft->candidates[i];
        if (candidate->module == module && candidate->kind->family == FAMILY_RUST &&
            candidate->kind->role == role &&
            (candidate->state == STATE_KEPT || candidate->state == STATE_FORWARDS) &&
            !does_nothing(draft, candidate))
            return true;
    }
    return false;
}

/* Even a function that is probed may have been inlined in some of its callers, and a probe does not see those
 * calls. The debug info tells; without it, there is a doubt. */
static void warn_of_inlining(struct plan_draft *draft, size_t index) {
    const struct plan_module *module = &draft->modules[index];
    struct rust_inlined inlined;
    rust_inlined_find(module->elf, &inlined);
    char *names = NULL;
    bool is_described = true;
    for (size_t i = 0; i < draft->candidate_count; i++) {
        const struct candidate *candidate = &draft->candidates[i];
        Dwarf_Die die;
        if (candidate->module != index || candidate->kind->family != FAMILY_RUST ||
            candidate->state != STATE_KEPT)
            continue;
        is_described &= elf_code_describe(module->elf, candidate->function->address, &die);
        if (!rust_inlined_has(&inlined, candidate->function->name)) continue;
        char *name = plan_candidates_name(candidate, DMGL_NO_OPTS);
        char *longer = memory_format_text("%s%s%s", names ? names : "", names ? ", " : "", name);
        free(name);
        free(names);
        names = longer;
    }
    rust_inlined_clear(&inlined);
    if (names)
        plan_add_warning(draft->plan, names,
            memory_format_text("were put inline in some places, which are not seen; %s", remedy));
    else if (!is_described)
        plan_add_warning(draft->plan, memory_copy_text(plan_modules_name(module)),
            memory_format_text(
                "has a Rust allocator of its own, and no debug information that says whether it was "
                "put inline: such calls are not seen; to be sure, %s",
                remedy));
}

static void warn_of_rust(struct plan_draft *draft, size_t index) {
    const char *name = plan_modules_name(&draft->modules[index]);
    bool is_probed = false;
    for (size_t i = 0; i < draft->candidate_count && !is_probed; i++)
        is_probed = draft->candidates[i].module == index &&
                    draft->candidates[i].kind->family == FAMILY_RUST &&
                    draft->candidates[i].state == STATE_KEPT;
    if (!is_probed) return;
    warn_of_inlining(draft, index);
    if (!has_rust_role(draft, index, ROLE_FREE))
        plan_add_warning(draft->plan, memory_copy_text(name),
            memory_format_text(
                "frees nothing, or has put the frees of its Rust allocator inline everywhere: all its "
                "blocks will look live; %s",
                remedy));
    if (!has_rust_role(draft, index, ROLE_ALLOCATE))
        plan_add_warning(draft->plan, memory_copy_text(name),
            memory_format_text(
                "has put the allocations of its Rust allocator inline everywhere: only blocks that are "
                "resized are seen; %s",
                remedy));
}

static bool is_rust(const struct plan_module *module) {
    size_t count;
    const struct elf_function *functions = elf_code_functions(module->elf, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(functions[i].name, "rust_eh_personality") == 0 || strstr(functions[i].name, "7___rustc"))
            return true;
    return false;
}

/* A program that calls no allocator itself usually leaves that to its libraries: then there is only a doubt. A
 * Rust program without such calls has had its allocator inlined: then its allocations are missed. */
static void warn_of_unknown_allocator(struct plan_draft *draft, const struct plan_module *program) {
    struct plan *plan = draft->plan;
    if (calls_an_allocator(draft, program)) return;
    if (is_rust(program)) {
        plan_add_warning(plan, memory_copy_text(plan_modules_name(program)),
            memory_format_text(
                "is a Rust program that calls none of these allocators, and the functions of its "
                "#[global_allocator] were put inline: it is not seen; %s",
                remedy));
        return;
    }
    plan_add_warning(plan, memory_copy_text(plan_modules_name(program)),
        memory_copy_text(
            "calls none of these allocators itself: if it has one of its own, that is not seen"));
    plan->warnings[plan->warning_count - 1].is_doubt = true;
}

void plan_warnings_find(struct plan_draft *draft, bool allocates) {
    const struct plan_module *program = find_program(draft);
    if (program) warn_of_hidden_allocators(draft, program);
    for (size_t i = 0; i < draft->module_count; i++) warn_of_rust(draft, i);
    if (program && allocates) warn_of_unknown_allocator(draft, program);
}

static const char unnamed_remedy[] =
    "give it its symbol table (build without strip, or install its debug symbols), or "
    "poll the heap's size only: malloscope attach --via smaps";

int plan_warnings_explain_nothing(const struct plan_draft *draft, struct problem *problem) {
    const struct plan *plan = draft->plan;
    const struct plan_module *program = find_program(draft);
    for (size_t i = 0; i < plan->warning_count; i++)
        if (program && strcmp(plan->warnings[i].what, plan_modules_name(program)) == 0)
            return problem_set(problem, PROBLEM_FAILURE, unnamed_remedy, "process %d (%s) %s", (int)plan->pid,
                plan->program, plan->warnings[i].why);
    bool is_bare = program && !elf_code_has_symbols(program->elf) && !elf_code_is_dynamic(program->elf);
    return problem_set(problem, PROBLEM_FAILURE,
        is_bare ? unnamed_remedy
                : "known are malloc of any C library, jemalloc, mimalloc, tcmalloc and "
                  "Rust's global allocator; poll the heap's size only: malloscope attach --via smaps",
        is_bare ? "no allocator can be found in process %d (%s): it is statically linked, and its names were "
                  "stripped"
                : "no allocator that is known can be found in process %d (%s)",
        (int)plan->pid, plan->program);
}
