/* What remote.c and remote_unwind.c share: the state of a process whose stacks are walked. */
#ifndef MALLOSCOPE_ATTACH_REMOTE_REMOTE_PRIVATE_H
#define MALLOSCOPE_ATTACH_REMOTE_REMOTE_PRIVATE_H

#include "attach/remote/address_space.h"
#include "attach/remote/remote.h"
#include "attach/remote/remote_rule_cache.h"
#include "unwind/refresh_budget.h"

struct remote {
    struct remote_rule_cache *rules;
    struct remote_process process;
    struct address_space address_space;
    struct remote_figures figures;
    uint64_t stack_end;              /* where the last walk ended (remote_stack_end) */
    struct refresh_budget uncovered; /* for readings of the maps because no mapping covers an address */
    struct refresh_budget doubted;   /* for those because a walk was lost (remote_changed) */
};

/* The mapping that covers an address, or NULL. If none is known, the maps are read again, as far as the budget
 * allows. */
const struct mapping *remote_covering(struct remote *remote, uint64_t address);

/* To be called when a walk was lost: perhaps a library has taken the place of another, whose rules the walk
 * followed. Whether there are modules with a number above `newest`. If none is known, the maps are read again, as
 * far as the budget allows. */
bool remote_changed(struct remote *remote, uint64_t newest);

/* Evaluates the rule of a pc and puts it into the cache. RULE_OUTSIDE, which is not kept, if no mapping covers the
 * pc. */
struct rule remote_evaluate(struct remote *remote, uint64_t pc);

/* The rule of a pc, from the cache if it is there. */
static inline struct rule remote_rule(struct remote *remote, uint64_t pc) {
    const struct rule *rule = remote_rule_cache_find(remote->rules, pc);
    return __builtin_expect(rule != NULL, 1) ? *rule : remote_evaluate(remote, pc);
}

#endif
