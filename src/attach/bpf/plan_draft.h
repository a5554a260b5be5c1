/* A plan while it is being made: what the steps hand on to each other. For these files alone:
 *
 *     plan_modules.c       which files are mapped, and whose malloc the program calls
 *     plan_candidates.c    which of their functions belong to allocators, and which of those only call another one
 *     plan.c               makes layers and probes of the functions that are kept
 *     plan_warnings.c      which allocations will be missed
 */
#ifndef MALLOSCOPE_ATTACH_BPF_PLAN_DRAFT_H
#define MALLOSCOPE_ATTACH_BPF_PLAN_DRAFT_H

#include "attach/bpf/elf_code.h"
#include "attach/bpf/plan.h"
#include "attach/bpf/target.h"

/* A mapped file with code: the program or a library. */
struct plan_module {
    const struct target_file *file;
    struct elf_code *elf;
    bool serves_malloc; /* calls of malloc in the program lead to this module */
    size_t bound;       /* so many modules have their slot for malloc filled with this module's malloc */
};

enum candidate_state {
    STATE_KEPT,     /* gets a probe */
    STATE_UNCLEAR,  /* a Rust method; which registers hold its arguments is not known yet */
    STATE_ALIAS,    /* another name for the code of a candidate that comes before it */
    STATE_FORWARDS, /* always calls another candidate */
    STATE_REFUSED,  /* cannot be probed */
};

/* A function of an allocator, which may get a probe. */
struct candidate {
    size_t module; /* index in `modules` */
    const struct function_kind *kind;
    const struct elf_function *function;
    enum candidate_state state;
    bool nests;                  /* may call another candidate */
    struct function_kind learnt; /* `kind` points here if the places of its arguments were found out */
};

struct plan_draft {
    struct target target;
    struct plan_module *modules;
    size_t module_count;
    struct candidate *candidates;
    size_t candidate_count, candidate_room;
    bool bindings_are_known; /* a slot for malloc could be read */
    struct plan *plan;
};

/* ---- plan_modules.c ---- */

/* Opens the target's files. A file that cannot be opened becomes a warning. Fails if the program is not for
 * x86-64. */
int plan_modules_open(struct plan_draft *draft, struct problem *problem);

/* Marks the modules whose malloc the program calls. */
void plan_modules_find_servers(struct plan_draft *draft);

/* The name of the module's file, without folders. */
const char *plan_modules_name(const struct plan_module *module);

/* The function of that name that has code in the module, or NULL. */
const struct elf_function *plan_modules_find_function(const struct plan_module *module, const char *name);

/* ---- plan_candidates.c ---- */

/* Lists the candidates of all modules and settles the state of each. Adds notes on functions that are left out. */
void plan_candidates_find(struct plan_draft *draft);

/* The name of the function for people, written as libiberty's options say. The caller frees it. */
char *plan_candidates_name(const struct candidate *candidate, int demangle_options);

/* ---- plan_warnings.c ---- */

/* Warns of allocators that the program contains and that cannot be probed. `allocates`: another one can be. */
void plan_warnings_find(struct plan_draft *draft, bool allocates);

/* Explains in `problem` why no function that allocates can be probed. Returns its negative kind. */
int plan_warnings_explain_nothing(const struct plan_draft *draft, struct problem *problem);

/* ---- plan.c ---- */

/* Add a note. The plan takes over both texts and frees them. */
void plan_add_refusal(struct plan *plan, char *what, char *why);
void plan_add_warning(struct plan *plan, char *what, char *why);

#endif
