/* How a plan is made. Used by plan.c alone; its steps are in files of their own:
 *
 *     plan_modules.c       which files are mapped, and whose malloc is called
 *     plan_candidates.c    which of their functions allocate, and which of those only call another one
 *     plan.c               layers and probes
 *     plan_warnings.c      what will not be seen
 */
#ifndef MALLOSCOPE_ATTACH_BPF_PLAN_DRAFT_H
#define MALLOSCOPE_ATTACH_BPF_PLAN_DRAFT_H

#include "attach/bpf/elf_code.h"
#include "attach/bpf/plan.h"
#include "attach/bpf/target.h"

struct plan_module {
    const struct target_file *file;
    struct elf_code *elf;
    bool serves_malloc;
    size_t bound; /* modules whose malloc is this one's */
};

enum candidate_state {
    STATE_KEPT,
    STATE_UNCLEAR,  /* a method whose arguments are not known yet */
    STATE_ALIAS,    /* another name for one that comes before */
    STATE_FORWARDS, /* always calls another one */
    STATE_REFUSED,
};

struct candidate {
    size_t module;
    const struct function_kind *kind;
    const struct elf_function *function;
    enum candidate_state state;
    bool nests;
    struct function_kind learnt; /* what `kind` points to if its arguments were found out */
};

struct plan_draft {
    struct target target;
    struct plan_module *modules;
    size_t module_count;
    struct candidate *candidates;
    size_t candidate_count, candidate_room;
    bool bindings_are_known;
    struct plan *plan;
};

/* Opens the files. Those that cannot be opened are warned of. */
int plan_modules_open(struct plan_draft *draft, struct problem *problem);
void plan_modules_close(struct plan_draft *draft);

/* Marks the modules whose malloc is called. */
void plan_modules_find_servers(struct plan_draft *draft);

/* Lists the functions and settles their state; notes what is left out. */
void plan_candidates_find(struct plan_draft *draft);

/* Warns of allocators that are there and cannot be probed; `allocates`: another one is. */
void plan_warnings_find(struct plan_draft *draft, bool allocates);

/* Nothing that allocates can be probed. */
int plan_warnings_explain_nothing(const struct plan_draft *draft, struct problem *problem);

/* ---- small things ---- */

const char *plan_modules_name(const struct plan_module *module); /* without folders */

/* The function of that name that has code, or NULL. */
const struct elf_function *plan_modules_find_function(const struct plan_module *module, const char *name);

/* How people know the function, with libiberty's options on how to write it. Freed by the caller. */
char *plan_candidates_name(const struct candidate *candidate, int demangle_options);

/* Both texts are owned by the plan from then on. */
void plan_add_refusal(struct plan *plan, char *what, char *why);
void plan_add_warning(struct plan *plan, char *what, char *why);

#endif
