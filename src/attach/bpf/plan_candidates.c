#include "attach/bpf/plan_draft.h"

#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "attach/bpf/control_flow.h"
#include "attach/bpf/rust_arguments.h"
#include "base/memory.h"

/* How many calls deep control flow is followed. FORWARD_DEPTH is for the question whether a function always calls
 * another candidate: Rust's debug builds wrap an allocator in three functions. NEST_DEPTH is for the question
 * whether it sometimes does: what lies deeper are paths that print a message and abort. */
#define FORWARD_DEPTH 4
#define NEST_DEPTH    2

/* Whether the function can be a candidate. C library functions count only in the module that serves malloc. The C++
 * library's own operators always call malloc, so they never count. */
static bool is_wanted(const struct plan_module *module, const struct function_kind *kind) {
    if (kind->family == FAMILY_OPERATORS)
        return strncmp(plan_modules_name(module), "libstdc++", 9) != 0 &&
               strncmp(plan_modules_name(module), "libc++", 6) != 0;
    return kind->family != FAMILY_LIBC || module->serves_malloc;
}

static void add_candidates(struct plan_draft *draft, size_t index) {
    const struct plan_module *module = &draft->modules[index];
    size_t count;
    const struct elf_function *functions = elf_code_functions(module->elf, &count);
    for (size_t i = 0; i < count; i++) {
        const struct function_kind *kind = allocator_functions_find(functions[i].name);
        size_t size;
        if (!kind || !is_wanted(module, kind) || !elf_code_bytes(module->elf, functions[i].address, &size))
            continue;
        if (draft->candidate_count == draft->candidate_room) {
            draft->candidate_room = draft->candidate_room ? 2 * draft->candidate_room : 128;
            draft->candidates =
                memory_reallocate(draft->candidates, draft->candidate_room * sizeof *draft->candidates);
        }
        draft->candidates[draft->candidate_count++] = (struct candidate){.module = index,
            .kind = kind,
            .function = &functions[i],
            .state = kind->is_method ? STATE_UNCLEAR : STATE_KEPT};
    }
}

static bool is_same_code(const struct candidate *a, const struct candidate *b) {
    return a->module == b->module && a->function->address == b->function->address;
}

/* Orders by module and address. Of several names for one address the C library's name comes first, and a short
 * name before a long one: the first one is kept, the others are aliases. */
static int by_place(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    if (x->module != y->module) return x->module < y->module ? -1 : 1;
    if (x->function->address != y->function->address)
        return x->function->address < y->function->address ? -1 : 1;
    if (x->kind->family != y->kind->family) return x->kind->family < y->kind->family ? -1 : 1;
    if (x->kind->is_method != y->kind->is_method) return x->kind->is_method ? 1 : -1;
    size_t long_x = strlen(x->function->name), long_y = strlen(y->function->name);
    if (long_x != long_y) return long_x < long_y ? -1 : 1;
    return strcmp(x->function->name, y->function->name);
}

static void list_candidates(struct plan_draft *draft) {
    for (size_t i = 0; i < draft->module_count; i++) add_candidates(draft, i);
    if (!draft->candidate_count) return;
    qsort(draft->candidates, draft->candidate_count, sizeof *draft->candidates, by_place);
    for (size_t i = 1; i < draft->candidate_count; i++)
        if (is_same_code(&draft->candidates[i - 1], &draft->candidates[i]))
            draft->candidates[i].state = STATE_ALIAS;
}

/* Refuses functions whose names look like an allocator's, but only by chance: any program may call a function
 * tc_free. A real allocator has functions that allocate and functions that free. */
static void refuse_half_families(struct plan_draft *draft) {
    for (size_t i = 0; i < draft->candidate_count; i++) {
        struct candidate *candidate = &draft->candidates[i];
        enum function_family family = candidate->kind->family;
        if (candidate->state != STATE_KEPT || family == FAMILY_LIBC || family == FAMILY_SYSTEM ||
            family == FAMILY_OPERATORS || draft->modules[candidate->module].serves_malloc)
            continue;
        bool has[ROLE_UNWIND + 1] = {false};
        for (size_t k = 0; k < draft->candidate_count; k++)
            if (draft->candidates[k].module == candidate->module &&
                draft->candidates[k].kind->family == family)
                has[draft->candidates[k].kind->role] = true;
        /* The optimiser may have inlined all but one of Rust's functions. Nobody else uses such names. */
        if ((has[ROLE_ALLOCATE] && has[ROLE_FREE]) || family == FAMILY_RUST) continue;
        candidate->state = STATE_REFUSED;
        plan_add_refusal(draft->plan,
            memory_format_text(
                "%s in %s", candidate->function->name, plan_modules_name(&draft->modules[candidate->module])),
            memory_copy_text("the rest of the allocator's functions is not there"));
    }
}

/* ---- which candidate calls which ---- */

/* The candidates that control flow is followed to: those with one of the roles, but not `self`. */
struct goal {
    const struct plan_draft *draft;
    const struct candidate *self;
    unsigned roles; /* bit n: role n */
    bool aligned;   /* only functions that return a block with an alignment of the caller's choice */
};

static bool is_aligning(const struct function_kind *kind) {
    return kind->role == ROLE_ALLOCATE && (strstr(kind->name, "align") || strstr(kind->name, "valloc"));
}

static bool is_goal(const struct goal *goal, const struct candidate *candidate) {
    return candidate->state != STATE_REFUSED && candidate->state != STATE_UNCLEAR &&
           (goal->roles >> candidate->kind->role & 1) && !is_same_code(candidate, goal->self) &&
           (!goal->aligned || is_aligning(candidate->kind));
}

static bool is_goal_address(const void *context, uint64_t address) {
    const struct goal *goal = context;
    for (size_t i = 0; i < goal->draft->candidate_count; i++) {
        const struct candidate *candidate = &goal->draft->candidates[i];
        if (candidate->module == goal->self->module && candidate->function->address == address &&
            is_goal(goal, candidate))
            return true;
    }
    return false;
}

static bool is_goal_name(const void *context, const char *name) {
    const struct goal *goal = context;
    for (size_t i = 0; i < goal->draft->candidate_count; i++) {
        const struct candidate *candidate = &goal->draft->candidates[i];
        if (strcmp(candidate->function->name, name) == 0 && is_goal(goal, candidate)) return true;
    }
    return false;
}

/* Follows a function to the candidates that `context` describes. */
static struct control_flow_paths follow(
    const struct goal *context, struct control_flow_goal goal, int depth) {
    goal.is_address = is_goal_address;
    goal.is_name = is_goal_name;
    goal.context = context;
    const struct candidate *self = context->self;
    return control_flow_follow(
        context->draft->modules[self->module].elf, self->function->address, depth, &goal);
}

/* `reaches` of the result: whether every path through the function calls such a candidate. */
static struct control_flow_paths always_leads(const struct goal *context, int depth) {
    struct control_flow_paths paths =
        follow(context, (struct control_flow_goal){.stops_at_return = true}, depth);
    if (paths.returns) paths.reaches = false;
    return paths;
}

/* `reaches` of the result: whether some path does. */
static struct control_flow_paths may_lead(
    const struct plan_draft *draft, const struct candidate *candidate, unsigned roles, int depth) {
    struct goal context = {draft, candidate, roles, false};
    return follow(&context, (struct control_flow_goal){.stops_at_return = false}, depth);
}

/* `reaches` of the result: whether some path does, and every other path returns without calling anything. */
static struct control_flow_paths leads_or_gives_up(const struct goal *context) {
    struct control_flow_paths paths = follow(context, (struct control_flow_goal){.visits_all = true}, 0);
    if (paths.calls_others) paths.reaches = false;
    return paths;
}

/* "<shop::Shelf as GlobalAlloc>::alloc" */
static char *method_name(const struct candidate *candidate) {
    static const char trait[] = "core::alloc::global::";
    char *name = cplus_demangle(candidate->function->name, DMGL_AUTO | DMGL_NO_OPTS);
    if (!name) return memory_format_text("GlobalAlloc::%s", candidate->kind->name);
    char *path = strstr(name, trait);
    if (path) memmove(path, path + strlen(trait), strlen(path + strlen(trait)) + 1);
    return name;
}

char *plan_candidates_name(const struct candidate *candidate, int demangle_options) {
    if (candidate->kind->is_method) return method_name(candidate);
    if (candidate->kind->family == FAMILY_RUST) return memory_copy_text(candidate->kind->name);
    char *name = candidate->kind->family == FAMILY_OPERATORS
                     ? cplus_demangle(candidate->function->name, demangle_options)
                     : NULL;
    return name ? name : memory_copy_text(candidate->function->name);
}

/* Whether `name` is one of the names in a list that commas separate. */
static bool is_in_list(const char *list, size_t length, const char *name) {
    size_t wanted = strlen(name);
    for (const char *at = list, *end; at; at = end ? end + 2 : NULL) {
        end = memmem(at, (size_t)(list + length - at), ", ", 2);
        if ((size_t)((end ? end : list + length) - at) == wanted && memcmp(at, name, wanted) == 0)
            return true;
    }
    return false;
}

/* Notes that a candidate is left out since it always calls `reached`, and frees that text. If there is a note on
 * the same module with the same reason, the name is added to it: twenty operators take one line. */
static void refuse_forward(struct plan_draft *draft, const struct candidate *candidate, char *reached) {
    struct plan *plan = draft->plan;
    char *where = memory_format_text(" in %s", plan_modules_name(&draft->modules[candidate->module]));
    char *why = memory_format_text("always calls %s", reached),
         *name = plan_candidates_name(candidate, DMGL_NO_OPTS);
    free(reached);
    for (size_t i = 0; i < plan->refused_count; i++) {
        struct plan_note *note = &plan->refused[i];
        size_t length = strlen(note->what), end = strlen(where);
        if (strcmp(note->why, why) != 0 || length < end || strcmp(note->what + length - end, where) != 0)
            continue;
        if (!is_in_list(note->what, length - end, name)) {
            char *longer = memory_format_text("%.*s, %s%s", (int)(length - end), note->what, name, where);
            free(note->what);
            note->what = longer;
        }
        free(why);
        why = NULL;
        break;
    }
    if (why) plan_add_refusal(plan, memory_format_text("%s%s", name, where), why);
    free(where);
    free(name);
}

/* The name of the candidate that control flow from `from` has reached. The caller frees it. */
static char *name_of_reached(
    const struct plan_draft *draft, const struct candidate *from, const struct control_flow_paths *paths) {
    for (size_t i = 0; i < draft->candidate_count; i++) {
        const struct candidate *candidate = &draft->candidates[i];
        if (paths->reached_name
                ? strcmp(candidate->function->name, paths->reached_name) == 0
                : candidate->module == from->module && candidate->function->address == paths->reached_address)
            return plan_candidates_name(candidate, DMGL_NO_OPTS);
    }
    return memory_copy_text("?");
}

/* `reaches` of the result: whether the candidate always calls another one that can be probed in its place. That one
 * must be told of the same blocks:
 *
 *   - memalign may call malloc for more than it was asked for, and return an address inside that block, which is
 *     what the program frees. So it is left to another function that aligns, and to no other.
 *   - realloc may allocate by malloc and release the old block by a function that is not known, or keep it. So it
 *     is left to another realloc, and to no other. */
static struct control_flow_paths find_forward(
    const struct plan_draft *draft, const struct candidate *candidate) {
    const struct function_kind *kind = candidate->kind;
    struct goal context = {draft, candidate, 1u << kind->role, is_aligning(kind)};
    struct control_flow_paths paths = always_leads(&context, FORWARD_DEPTH);
    if (paths.reaches || kind->role != ROLE_RESIZE) return paths;
    /* reallocarray and its like return early when the product overflows: then they allocate nothing. */
    if (kind->factor >= 0) return leads_or_gives_up(&context);
    if (kind->family != FAMILY_RUST) return paths;
    /* Rust's own realloc, which an allocator has if it defines none, is made of alloc and dealloc. It may be left
     * to these two if both are probed. A realloc of the C library cannot be recognised like this: it is called
     * with NULL, too, and so it need not release anything. */
    context.roles = 1 << ROLE_RESIZE | 1 << ROLE_ALLOCATE;
    paths = always_leads(&context, FORWARD_DEPTH);
    if (paths.reaches)
        paths.reaches = may_lead(draft, candidate, 1 << ROLE_RESIZE | 1 << ROLE_FREE, FORWARD_DEPTH).reaches;
    return paths;
}

/* Leaves out the candidates in the given state that always call another candidate. */
static void drop_forwarders(struct plan_draft *draft, enum candidate_state state) {
    for (size_t i = 0; i < draft->candidate_count; i++) {
        struct candidate *candidate = &draft->candidates[i];
        if (candidate->state != state || candidate->kind->family == FAMILY_SYSTEM) continue;
        struct control_flow_paths paths = find_forward(draft, candidate);
        if (!paths.reaches) continue;
        candidate->state = STATE_FORWARDS;
        refuse_forward(draft, candidate, name_of_reached(draft, candidate, &paths));
    }
}

/* ---- Rust's methods ---- */

/* Finds the registers of a method's arguments in the code of the functions that call it. The registers of the
 * callers' own arguments must be known. */
static bool learn_by_callers(
    const struct plan_draft *draft, const struct candidate *method, struct function_kind *kind) {
    struct rust_hints hints = rust_arguments_no_hints(kind);
    for (size_t i = 0; i < draft->candidate_count; i++) {
        const struct candidate *caller = &draft->candidates[i];
        if (caller->module == method->module && caller->kind->family == FAMILY_RUST &&
            caller->state == STATE_KEPT)
            rust_arguments_add_hints(&hints, draft->modules[caller->module].elf, caller->function,
                caller->kind, method->function->address);
    }
    return rust_arguments_by_hints(&hints, kind);
}

/* Finds out which registers hold the arguments: by the debug info, or for a method by its callers. The functions
 * that Rust calls by a fixed name (__rust_alloc) have their arguments in the order of the source, unless the
 * debug info says otherwise. */
static bool learn_arguments(const struct plan_draft *draft, struct candidate *candidate) {
    struct function_kind kind = *candidate->kind;
    if (!rust_arguments_by_debug(
            draft->modules[candidate->module].elf, candidate->function->address, &kind) &&
        kind.is_method && !learn_by_callers(draft, candidate, &kind))
        return false;
    candidate->learnt = kind;
    candidate->kind = &candidate->learnt;
    return true;
}

/* Does so for all of Rust's functions. False if there are none. */
static bool learn_all_arguments(struct plan_draft *draft) {
    bool learns = false;
    for (size_t i = 0; i < draft->candidate_count; i++)
        if (draft->candidates[i].kind->family == FAMILY_RUST && draft->candidates[i].state == STATE_KEPT)
            learns |= learn_arguments(draft, &draft->candidates[i]);
    for (size_t i = 0; i < draft->candidate_count; i++) {
        struct candidate *candidate = &draft->candidates[i];
        if (candidate->state != STATE_UNCLEAR) continue;
        learns = true;
        bool is_known = learn_arguments(draft, candidate);
        candidate->state = is_known ? STATE_KEPT : STATE_REFUSED;
        if (!is_known)
            plan_add_refusal(draft->plan, plan_candidates_name(candidate, DMGL_NO_OPTS),
                memory_copy_text("which registers hold its arguments is not known"));
    }
    return learns;
}

/* A Rust allocator that hands every free on to another allocator gives out blocks of that other allocator,
 * perhaps with a header in front of each. Then that other allocator is probed for allocations, too, and the Rust
 * functions are left out. */
static void follow_frees(struct plan_draft *draft) {
    for (size_t i = 0; i < draft->candidate_count; i++) {
        const struct candidate *free = &draft->candidates[i];
        if (free->kind->family == FAMILY_RUST && free->kind->role == ROLE_FREE &&
            free->state != STATE_FORWARDS && free->state != STATE_ALIAS)
            return;
    }
    unsigned roles = 1 << ROLE_ALLOCATE | 1 << ROLE_RESIZE;
    for (size_t i = 0; i < draft->candidate_count; i++) {
        struct candidate *candidate = &draft->candidates[i];
        if (candidate->kind->family != FAMILY_RUST || candidate->state != STATE_KEPT) continue;
        struct control_flow_paths paths = may_lead(draft, candidate, roles, FORWARD_DEPTH);
        if (!paths.reaches) continue;
        candidate->state = STATE_FORWARDS;
        refuse_forward(draft, candidate, name_of_reached(draft, candidate, &paths));
    }
}

/* Marks the candidates inside whose calls another candidate may be called: realloc may call malloc. Inside a free,
 * only another free counts. */
static void find_nesting(struct plan_draft *draft) {
    unsigned frees = 1 << ROLE_FREE, all = 1 << ROLE_ALLOCATE | 1 << ROLE_RESIZE | frees;
    for (size_t i = 0; i < draft->candidate_count; i++) {
        struct candidate *candidate = &draft->candidates[i];
        if (candidate->state != STATE_KEPT || candidate->kind->family == FAMILY_SYSTEM) continue;
        struct goal inside = {draft, candidate, candidate->kind->role == ROLE_FREE ? frees : all, false};
        candidate->nests = may_lead(draft, candidate, inside.roles, NEST_DEPTH).reaches ||
                           always_leads(&inside, FORWARD_DEPTH).reaches;
    }
}

void plan_candidates_find(struct plan_draft *draft) {
    list_candidates(draft);
    refuse_half_families(draft);
    drop_forwarders(draft, STATE_UNCLEAR);
    drop_forwarders(draft, STATE_KEPT);
    /* In most programs nothing is left to learn here: Rust functions that call a known allocator have been left
     * out. */
    if (learn_all_arguments(draft)) {
        drop_forwarders(draft, STATE_KEPT);
        follow_frees(draft);
    }
    find_nesting(draft);
}
