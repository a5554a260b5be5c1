#include "bpf/plan.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>
#include <libiberty/libiberty.h>

#include "bpf/code_walk.h"
#include "bpf/cookie.h"
#include "bpf/image.h"
#include "bpf/target.h"

/* How deep calls are followed: to find out that a function only calls another one (Rust's debug builds wrap
 * an allocator three times), and that it may do so in the end. Further down there are only the ways that end
 * in a message and abort. */
#define FORWARD_DEPTH 4
#define NEST_DEPTH    2

struct module {
    const struct target_file *file;
    struct image *image;
    bool serves_malloc;
    size_t bound; /* modules whose malloc is this one's */
};

enum state {
    STATE_KEPT,
    STATE_ALIAS,    /* another name for one that comes before */
    STATE_FORWARDS, /* always calls another one */
    STATE_REFUSED,
};

struct candidate {
    size_t module;
    const struct function_kind *kind;
    const struct image_function *function;
    enum state state;
    bool nests;
};

struct builder {
    struct target target;
    struct module *modules;
    size_t module_count;
    struct candidate *candidates;
    size_t candidate_count, candidate_room;
    bool bindings_are_known;
    struct plan *plan;
};

static char *format(const char *text, ...) __attribute__((format(printf, 1, 2)));
static char *format(const char *text, ...) {
    char *result = NULL;
    va_list arguments;
    va_start(arguments, text);
    if (vasprintf(&result, text, arguments) < 0) result = xstrdup("");
    va_end(arguments);
    return result;
}

static void add_note(struct plan_note **notes, size_t *count, char *what, char *why) {
    *notes = xrealloc(*notes, (*count + 1) * sizeof **notes);
    (*notes)[(*count)++] = (struct plan_note){what, why};
}

static void warn(struct plan *plan, char *what, char *why) {
    add_note(&plan->warnings, &plan->warning_count, what, why);
}

static const char *file_name(const struct module *module) {
    return lbasename(module->file->path);
}

/* ---- what is mapped ---- */

static int open_modules(struct builder *builder, struct problem *problem) {
    builder->modules = xcalloc(builder->target.file_count, sizeof *builder->modules);
    char *root = format("/proc/%d/root", (int)builder->target.pid);
    int r = 0;
    for (size_t i = 0; i < builder->target.file_count && r >= 0; i++) {
        const struct target_file *file = &builder->target.files[i];
        struct module *module = &builder->modules[builder->module_count];
        struct problem trouble = {.what = "it was deleted, and /proc/PID/map_files may not be read"};
        if (!file->open_path ||
            image_open(file->open_path, root, file->is_program, &module->image, &trouble) < 0) {
            warn(builder->plan, xstrdup(file->path), format("cannot be looked at: %s", trouble.what));
            continue;
        }
        module->file = file;
        builder->module_count++;
        if (file->is_program && !image_is_64_bit(module->image))
            r = problem_set(problem, PROBLEM_FAILURE, "attach is for 64-bit x86 programs; record it with run",
                "process %d (%s) is not a 64-bit x86 program", (int)builder->target.pid,
                builder->target.name);
    }
    free(root);
    return r;
}

static const struct module *find_program(const struct builder *builder) {
    for (size_t i = 0; i < builder->module_count; i++)
        if (builder->modules[i].file->is_program) return &builder->modules[i];
    return NULL;
}

static const struct image_function *find_function(const struct image *image, const char *name) {
    size_t count;
    const struct image_function *functions = image_functions(image, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(functions[i].name, name) == 0 && functions[i].address) return &functions[i];
    return NULL;
}

/* ---- who serves malloc ---- */

/* The module whose malloc lies at this address of the program. */
static struct module *owner_of_malloc(struct builder *builder, uint64_t address) {
    uint64_t offset;
    const struct target_file *file = target_find(&builder->target, address, &offset);
    for (size_t i = 0; file && i < builder->module_count; i++) {
        struct module *module = &builder->modules[i];
        if (module->file != file) continue;
        const struct image_function *function = find_function(module->image, "malloc");
        /* Else it is a stub that will look malloc up when it is first called. */
        return function && image_offset(module->image, function->address) == offset ? module : NULL;
    }
    return NULL;
}

/* What the dynamic linker has put into the modules' slots for malloc. */
static void read_bindings(struct builder *builder) {
    for (size_t i = 0; i < builder->module_count; i++) {
        const struct module *module = &builder->modules[i];
        size_t count;
        const struct image_slot *slots = image_slots(module->image, &count);
        for (size_t k = 0; k < count; k++) {
            if (!slots[k].name || strcmp(slots[k].name, "malloc") != 0) continue;
            uint64_t place = target_address(module->file, image_offset(module->image, slots[k].address)),
                     word;
            if (!place || !target_read(&builder->target, place, &word)) continue;
            struct module *owner = owner_of_malloc(builder, word);
            if (!owner) continue;
            owner->serves_malloc = builder->bindings_are_known = true;
            owner->bound++;
            break;
        }
    }
}

static bool is_libc(const struct module *module) {
    return strncmp(file_name(module), "libc.", 5) == 0 || strncmp(file_name(module), "libc-", 5) == 0 ||
           strstr(file_name(module), "ld-musl");
}

static bool exports_malloc(const struct module *module) {
    size_t count;
    const struct image_function *functions = image_functions(module->image, &count);
    for (size_t i = 0; i < count; i++)
        if (functions[i].is_exported && strcmp(functions[i].name, "malloc") == 0) return true;
    return false;
}

/* Where nothing has been bound yet, or memory may not be read: as the dynamic linker would search, the
 * program first, the C library last. */
static void guess_bindings(struct builder *builder) {
    struct module *best = NULL;
    for (size_t i = 0; i < builder->module_count; i++) {
        struct module *module = &builder->modules[i];
        if (strncmp(file_name(module), "ld-linux", 8) == 0 || !exports_malloc(module)) continue;
        if (!best || module->file->is_program || (is_libc(best) && !best->file->is_program)) best = module;
        if (best->file->is_program) break;
    }
    if (best) best->serves_malloc = true;
}

static void find_servers(struct builder *builder) {
    read_bindings(builder);
    if (!builder->bindings_are_known) guess_bindings(builder);
    /* A malloc inside the program serves it without any slot: static programs, allocators linked in. */
    for (size_t i = 0; i < builder->module_count; i++)
        if (builder->modules[i].file->is_program && find_function(builder->modules[i].image, "malloc"))
            builder->modules[i].serves_malloc = true;
}

/* ---- the candidates ---- */

/* The C++ library's operators sit on malloc; anybody else's may not. */
static bool is_wanted(const struct module *module, const struct function_kind *kind) {
    if (kind->family == FAMILY_OPERATORS)
        return strncmp(file_name(module), "libstdc++", 9) != 0 &&
               strncmp(file_name(module), "libc++", 6) != 0;
    return kind->family != FAMILY_LIBC || module->serves_malloc;
}

static void add_candidates(struct builder *builder, size_t index) {
    const struct module *module = &builder->modules[index];
    size_t count;
    const struct image_function *functions = image_functions(module->image, &count);
    for (size_t i = 0; i < count; i++) {
        const struct function_kind *kind = function_find(functions[i].name);
        size_t size;
        if (!kind || !is_wanted(module, kind) || !image_code(module->image, functions[i].address, &size))
            continue;
        if (builder->candidate_count == builder->candidate_room) {
            builder->candidate_room = builder->candidate_room ? 2 * builder->candidate_room : 128;
            builder->candidates =
                xrealloc(builder->candidates, builder->candidate_room * sizeof *builder->candidates);
        }
        builder->candidates[builder->candidate_count++] =
            (struct candidate){.module = index, .kind = kind, .function = &functions[i]};
    }
}

static bool is_same_code(const struct candidate *a, const struct candidate *b) {
    return a->module == b->module && a->function->address == b->function->address;
}

/* By module and address; of several names for one address the C library's comes first. */
static int by_place(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    if (x->module != y->module) return x->module < y->module ? -1 : 1;
    if (x->function->address != y->function->address)
        return x->function->address < y->function->address ? -1 : 1;
    if (x->kind->family != y->kind->family) return x->kind->family < y->kind->family ? -1 : 1;
    size_t long_x = strlen(x->function->name), long_y = strlen(y->function->name);
    if (long_x != long_y) return long_x < long_y ? -1 : 1;
    return strcmp(x->function->name, y->function->name);
}

static void find_candidates(struct builder *builder) {
    for (size_t i = 0; i < builder->module_count; i++) add_candidates(builder, i);
    if (!builder->candidate_count) return;
    qsort(builder->candidates, builder->candidate_count, sizeof *builder->candidates, by_place);
    for (size_t i = 1; i < builder->candidate_count; i++)
        if (is_same_code(&builder->candidates[i - 1], &builder->candidates[i]))
            builder->candidates[i].state = STATE_ALIAS;
}

/* Names such as tc_free may be anybody's. An allocator has functions of both kinds. */
static void refuse_half_families(struct builder *builder) {
    for (size_t i = 0; i < builder->candidate_count; i++) {
        struct candidate *candidate = &builder->candidates[i];
        enum function_family family = candidate->kind->family;
        if (candidate->state != STATE_KEPT || family == FAMILY_LIBC || family == FAMILY_SYSTEM ||
            family == FAMILY_OPERATORS || builder->modules[candidate->module].serves_malloc)
            continue;
        bool has[ROLE_UNWIND + 1] = {false};
        for (size_t k = 0; k < builder->candidate_count; k++)
            if (builder->candidates[k].module == candidate->module &&
                builder->candidates[k].kind->family == family)
                has[builder->candidates[k].kind->role] = true;
        /* The optimiser may have left one of Rust's only; they have no other meaning. */
        if ((has[ROLE_ALLOCATE] && has[ROLE_FREE]) || family == FAMILY_RUST) continue;
        candidate->state = STATE_REFUSED;
        add_note(&builder->plan->refused, &builder->plan->refused_count,
            format("%s in %s", candidate->function->name, file_name(&builder->modules[candidate->module])),
            xstrdup("the rest of the allocator's functions is not there"));
    }
}

/* ---- what calls what ---- */

struct goal {
    const struct builder *builder;
    const struct candidate *self;
    unsigned roles; /* bits */
};

static bool is_goal(const struct goal *goal, const struct candidate *candidate) {
    return candidate->state != STATE_REFUSED && (goal->roles >> candidate->kind->role & 1) &&
           !is_same_code(candidate, goal->self);
}

static bool is_goal_address(const void *context, uint64_t address) {
    const struct goal *goal = context;
    for (size_t i = 0; i < goal->builder->candidate_count; i++) {
        const struct candidate *candidate = &goal->builder->candidates[i];
        if (candidate->module == goal->self->module && candidate->function->address == address &&
            is_goal(goal, candidate))
            return true;
    }
    return false;
}

static bool is_goal_name(const void *context, const char *name) {
    const struct goal *goal = context;
    for (size_t i = 0; i < goal->builder->candidate_count; i++) {
        const struct candidate *candidate = &goal->builder->candidates[i];
        if (strcmp(candidate->function->name, name) == 0 && is_goal(goal, candidate)) return true;
    }
    return false;
}

static struct code_ways walk_candidate(
    const struct builder *builder, const struct candidate *candidate, unsigned roles, int depth) {
    struct goal context = {builder, candidate, roles};
    struct code_goal goal = {is_goal_address, is_goal_name, &context};
    return code_walk(builder->modules[candidate->module].image, candidate->function->address, depth, &goal);
}

/* How people know the function. Freed by the caller. */
static char *shown_name(const struct candidate *candidate, int demangle_options) {
    if (candidate->kind->family == FAMILY_RUST) return xstrdup(candidate->kind->name);
    char *name = candidate->kind->family == FAMILY_OPERATORS
                     ? cplus_demangle(candidate->function->name, demangle_options)
                     : NULL;
    return name ? name : xstrdup(candidate->function->name);
}

static bool is_in_list(const char *list, size_t length, const char *name) {
    size_t wanted = strlen(name);
    for (const char *at = list, *end; at; at = end ? end + 2 : NULL) {
        end = memmem(at, (size_t)(list + length - at), ", ", 2);
        if ((size_t)((end ? end : list + length) - at) == wanted && memcmp(at, name, wanted) == 0)
            return true;
    }
    return false;
}

/* Adds to the note on the same module and reason, so that twenty operators take one line. */
static void refuse_forward(struct builder *builder, const struct candidate *candidate, char *reached) {
    struct plan *plan = builder->plan;
    char *where = format(" in %s", file_name(&builder->modules[candidate->module]));
    char *why = format("always calls %s", reached), *name = shown_name(candidate, DMGL_NO_OPTS);
    free(reached);
    for (size_t i = 0; i < plan->refused_count; i++) {
        struct plan_note *note = &plan->refused[i];
        size_t length = strlen(note->what), end = strlen(where);
        if (strcmp(note->why, why) != 0 || length < end || strcmp(note->what + length - end, where) != 0)
            continue;
        if (!is_in_list(note->what, length - end, name)) {
            char *longer = format("%.*s, %s%s", (int)(length - end), note->what, name, where);
            free(note->what);
            note->what = longer;
        }
        free(why);
        why = NULL;
        break;
    }
    if (why) add_note(&plan->refused, &plan->refused_count, format("%s%s", name, where), why);
    free(where);
    free(name);
}

static char *name_of_way(
    const struct builder *builder, const struct candidate *from, const struct code_ways *ways) {
    for (size_t i = 0; i < builder->candidate_count; i++) {
        const struct candidate *candidate = &builder->candidates[i];
        if (ways->reached_name
                ? strcmp(candidate->function->name, ways->reached_name) == 0
                : candidate->module == from->module && candidate->function->address == ways->reached_address)
            return shown_name(candidate, DMGL_NO_OPTS);
    }
    return xstrdup("?");
}

/* Leaves out what only calls another one. */
static void drop_forwarders(struct builder *builder) {
    static const unsigned accepted[] = {
        [ROLE_ALLOCATE] = 1 << ROLE_ALLOCATE,
        [ROLE_RESIZE] = 1 << ROLE_RESIZE | 1 << ROLE_ALLOCATE,
        [ROLE_FREE] = 1 << ROLE_FREE,
    };
    for (size_t i = 0; i < builder->candidate_count; i++) {
        struct candidate *candidate = &builder->candidates[i];
        if (candidate->state != STATE_KEPT || candidate->kind->family == FAMILY_SYSTEM) continue;
        unsigned roles = accepted[candidate->kind->role];
        struct code_ways ways = walk_candidate(builder, candidate, roles, FORWARD_DEPTH);
        /* reallocarray and its like return early only when the product overflows. */
        if (ways.returns && candidate->kind->role == ROLE_RESIZE && candidate->kind->factor >= 0) {
            ways = walk_candidate(builder, candidate, 1 << ROLE_RESIZE, 0);
            ways.returns = false;
        }
        if (!ways.reaches || ways.returns) continue;
        candidate->state = STATE_FORWARDS;
        refuse_forward(builder, candidate, name_of_way(builder, candidate, &ways));
    }
}

static void find_nesting(struct builder *builder) {
    unsigned all = 1 << ROLE_ALLOCATE | 1 << ROLE_RESIZE | 1 << ROLE_FREE;
    for (size_t i = 0; i < builder->candidate_count; i++) {
        struct candidate *candidate = &builder->candidates[i];
        if (candidate->state == STATE_KEPT && candidate->kind->role <= ROLE_RESIZE)
            candidate->nests = walk_candidate(builder, candidate, all, NEST_DEPTH).reaches;
    }
}

/* ---- layers ---- */

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

/* Which allocator a module that serves malloc is. */
static const char *server_name(const struct module *module) {
    static const struct {
        const char *function, *name;
    } signs[] = {{"mscope_version", "malloscope's recorder"}, {"mallocx", "jemalloc"},
        {"mi_malloc", "mimalloc"}, {"tc_malloc", "tcmalloc"}, {"__asan_init", "AddressSanitizer"},
        {"malloc_trim", "glibc"}};
    if (strncmp(file_name(module), "libmalloscope", 13) == 0) return signs[0].name;
    for (size_t i = 1; i < sizeof signs / sizeof *signs; i++)
        if (find_function(module->image, signs[i].function)) return signs[i].name;
    if (strstr(file_name(module), "musl") || find_function(module->image, "__malloc_replaced")) return "musl";
    return "a malloc of its own";
}

static char *server_why(const struct builder *builder, const struct module *module) {
    if (module->bound)
        return format("malloc of %zu module%s is bound to it", module->bound, module->bound == 1 ? "" : "s");
    if (module->file->is_program) return xstrdup("its malloc is linked into the program");
    return xstrdup("it comes first in the order of search; the bindings themselves could not be read");
}

static size_t add_layer(struct plan *plan, char *name, char *why) {
    for (size_t i = 0; i < plan->layer_count; i++) {
        if (strcmp(plan->layers[i].name, name) != 0) continue;
        free(name);
        free(why);
        return i;
    }
    plan->layers = xrealloc(plan->layers, (plan->layer_count + 1) * sizeof *plan->layers);
    plan->layers[plan->layer_count] = (struct plan_layer){name, why};
    return plan->layer_count++;
}

static size_t layer_of(const struct builder *builder, const struct candidate *candidate) {
    const struct module *module = &builder->modules[candidate->module];
    enum function_family family = candidate->kind->family;
    if (family == FAMILY_SYSTEM) return SIZE_MAX;
    if (module->serves_malloc && family != FAMILY_RUST)
        return add_layer(builder->plan, format("%s (%s)", server_name(module), file_name(module)),
            server_why(builder, module));
    return add_layer(builder->plan, format("%s (%s)", family_name(family), file_name(module)),
        xstrdup(family == FAMILY_RUST
                    ? "the last resort: it does not hand everything on to an allocator that is known"
                    : "its functions are in the file"));
}

/* ---- the probes ---- */

/* Places in the kernel's struct pt_regs, by x86 number. */
static uint64_t register_slot(signed char number) {
    static const uint8_t slots[16] = {10, 11, 12, 5, 19, 4, 13, 14, 9, 8, 7, 6, 3, 2, 1, 0};
    return number < 0 ? COOKIE_NONE : slots[number];
}

/* The stretch of code that is glibc's allocator: its parts lie together, as they come from one source file.
 */
static void allocator_code(const struct module *module, uint64_t *ret_low, uint64_t *ret_high) {
    static const char *const parts[] = {"malloc", "calloc", "realloc", "free", "memalign", "valloc",
        "pvalloc", "posix_memalign", "malloc_trim"};
    *ret_low = *ret_high = 0;
    if (strcmp(server_name(module), "glibc") != 0) return;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const struct image_function *function = find_function(module->image, parts[i]);
        if (!function) continue;
        if (!*ret_high || function->address < *ret_low) *ret_low = function->address;
        if (function->address + function->size > *ret_high) *ret_high = function->address + function->size;
    }
}

static uint64_t make_cookie(
    const struct module *module, const struct candidate *candidate, const struct probe_point *point) {
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

static void add_probe(struct builder *builder, const struct candidate *candidate) {
    struct plan *plan = builder->plan;
    const struct module *module = &builder->modules[candidate->module];
    struct probe_point point;
    if (!probe_point_find(module->image, candidate->function, candidate->kind, &point)) return;
    uint64_t offset = image_offset(module->image, point.address);
    size_t layer = layer_of(builder, candidate);
    if (has_probe(plan, module->file, offset)) return;
    plan->probes = xrealloc(plan->probes, (plan->probe_count + 1) * sizeof *plan->probes);
    plan->probes[plan->probe_count++] = (struct plan_probe){
        .path = xstrdup(module->file->open_path),
        .module = xstrdup(module->file->path),
        .function = shown_name(candidate, DMGL_PARAMS | DMGL_ANSI),
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

/* ---- what will not be seen ---- */

static bool has_family(const struct builder *builder, enum function_family family) {
    for (size_t i = 0; i < builder->candidate_count; i++)
        if (builder->candidates[i].kind->family == family && builder->candidates[i].state != STATE_REFUSED)
            return true;
    return false;
}

/* Whether the program imports or holds a function that allocates. */
static bool calls_an_allocator(const struct builder *builder, const struct module *program) {
    size_t count;
    const struct image_slot *slots = image_slots(program->image, &count);
    for (size_t i = 0; i < count; i++) {
        const struct function_kind *kind = slots[i].name ? function_find(slots[i].name) : NULL;
        if (kind && kind->role <= ROLE_RESIZE) return true;
    }
    for (size_t i = 0; i < builder->candidate_count; i++)
        if (&builder->modules[builder->candidates[i].module] == program &&
            builder->candidates[i].kind->role <= ROLE_RESIZE)
            return true;
    return false;
}

static void warn_of_hidden_allocators(struct builder *builder, const struct module *program) {
    static const struct {
        enum function_family family;
        const char *text, *name;
    } signs[] = {{FAMILY_JEMALLOC, "<jemalloc>: ", "jemalloc"}, {FAMILY_MIMALLOC, "mimalloc: ", "mimalloc"},
        {FAMILY_TCMALLOC, "TCMALLOC_", "tcmalloc"}};
    struct plan *plan = builder->plan;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (!image_has_symbols(program->image) && !has_family(builder, signs[i].family) &&
            image_has_text(program->image, signs[i].text))
            warn(plan, xstrdup(file_name(program)),
                format(
                    "holds %s, but its names were stripped: what that allocates is not seen", signs[i].name));
    if (image_has_section(program->image, ".go.buildinfo"))
        warn(plan, xstrdup(file_name(program)),
            xstrdup("is a Go program: Go's own heap is not seen, only what its C parts allocate"));
    for (size_t i = 0; i < builder->candidate_count; i++) {
        const struct candidate *candidate = &builder->candidates[i];
        if (candidate->kind->family != FAMILY_RUST || candidate->state != STATE_KEPT) continue;
        warn(plan, xstrdup(file_name(&builder->modules[candidate->module])),
            xstrdup(
                "has a Rust allocator of its own: calls of it that the compiler put inline are not seen"));
        break;
    }
}

static int no_allocator(
    const struct builder *builder, const struct module *program, struct problem *problem) {
    const struct plan *plan = builder->plan;
    for (size_t i = 0; i < plan->warning_count; i++)
        if (program && strcmp(plan->warnings[i].what, file_name(program)) == 0)
            return problem_set(problem, PROBLEM_FAILURE,
                "give it its symbol table (build without strip, or install its debug symbols), or poll the "
                "heap's "
                "size only: malloscope attach --via smaps",
                "process %d (%s) %s", (int)plan->pid, plan->program, plan->warnings[i].why);
    bool is_bare = program && !image_has_symbols(program->image) && !image_is_dynamic(program->image);
    return problem_set(problem, PROBLEM_FAILURE,
        is_bare ? "give it its symbol table (build without strip, or install its debug symbols), or poll the "
                  "heap's "
                  "size only: malloscope attach --via smaps"
                : "known are malloc of any C library, jemalloc, mimalloc, tcmalloc and Rust's global "
                  "allocator; poll "
                  "the heap's size only: malloscope attach --via smaps",
        is_bare ? "no allocator can be found in process %d (%s): it is statically linked, and its names were "
                  "stripped"
                : "no allocator that is known can be found in process %d (%s)",
        (int)plan->pid, plan->program);
}

/* ---- all of it ---- */

static void remember_files(struct builder *builder) {
    struct plan *plan = builder->plan;
    plan->known_count = builder->target.file_count;
    plan->known_files = xrealloc(plan->known_files, (2 * plan->known_count + 1) * sizeof *plan->known_files);
    for (size_t i = 0; i < plan->known_count; i++) {
        plan->known_files[2 * i] = builder->target.files[i].device;
        plan->known_files[2 * i + 1] = builder->target.files[i].inode;
    }
}

static bool has_new_files(const struct builder *builder) {
    const struct plan *plan = builder->plan;
    for (size_t i = 0; i < builder->target.file_count; i++) {
        const struct target_file *file = &builder->target.files[i];
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

static void close_builder(struct builder *builder) {
    for (size_t i = 0; i < builder->module_count; i++) image_close(builder->modules[i].image);
    free(builder->modules);
    free(builder->candidates);
    target_close(&builder->target);
}

static int build(struct builder *builder, struct problem *problem) {
    struct plan *plan = builder->plan;
    clear_notes(&plan->refused, &plan->refused_count);
    clear_notes(&plan->warnings, &plan->warning_count);
    int r = open_modules(builder, problem);
    if (r < 0) return r;
    find_servers(builder);
    find_candidates(builder);
    refuse_half_families(builder);
    drop_forwarders(builder);
    find_nesting(builder);
    bool allocates = false, throws = false;
    for (size_t i = 0; i < builder->candidate_count; i++) {
        const struct candidate *candidate = &builder->candidates[i];
        if (candidate->state != STATE_KEPT) continue;
        if (candidate->kind->role == ROLE_ALLOCATE) allocates = true;
        if (candidate->kind->throws) throws = true;
    }
    for (size_t i = 0; i < builder->candidate_count; i++)
        if (builder->candidates[i].state == STATE_KEPT &&
            (builder->candidates[i].kind->role != ROLE_UNWIND || throws))
            add_probe(builder, &builder->candidates[i]);
    const struct module *program = find_program(builder);
    if (program) warn_of_hidden_allocators(builder, program);
    if (!allocates) return no_allocator(builder, program, problem);
    if (program && !calls_an_allocator(builder, program))
        warn(plan, xstrdup(file_name(program)),
            xstrdup("calls none of these allocators itself: if it has one of its own, that is not seen"));
    remember_files(builder);
    return 0;
}

int plan_make(pid_t pid, struct plan **ret_plan, struct problem *problem) {
    struct builder builder = {0};
    int r = target_open(pid, &builder.target, problem);
    if (r < 0) return r;
    struct plan *plan = builder.plan = xcalloc(1, sizeof *plan);
    plan->pid = pid;
    plan->program = xstrdup(builder.target.name);
    r = build(&builder, problem);
    close_builder(&builder);
    if (r < 0) {
        plan_free(plan);
        return r;
    }
    *ret_plan = plan;
    return 0;
}

int plan_extend(struct plan *plan, struct problem *problem) {
    struct builder builder = {.plan = plan};
    int r = target_open(plan->pid, &builder.target, problem);
    if (r < 0) return r;
    if (has_new_files(&builder)) r = build(&builder, problem);
    close_builder(&builder);
    return r;
}

bool plan_throws(const struct plan *plan) {
    for (size_t i = 0; i < plan->probe_count; i++)
        if (plan->probes[i].throws) return true;
    return false;
}

void plan_warn(struct plan *plan, const char *what, const char *why) {
    warn(plan, xstrdup(what), xstrdup(why));
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
