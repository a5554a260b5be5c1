/* A process whose stacks are walked. */
#ifndef MALLOSCOPE_ATTACH_REMOTE_REMOTE_PRIVATE_H
#define MALLOSCOPE_ATTACH_REMOTE_REMOTE_PRIVATE_H

#include "attach/remote/address_space.h"
#include "attach/remote/remote.h"
#include "attach/remote/remote_rule_cache.h"

struct remote {
    struct remote_rule_cache *rules;
    struct remote_process process;
    struct address_space address_space;
    struct remote_figures figures;
    uint64_t stack_end; /* of the last walk */
    struct budget {
        uint32_t used;    /* times that something was done in vain, less what was forgiven since */
        uint64_t since;   /* ms */
    } uncovered, doubted; /* of refreshes, by their reason */
};

/* The module that covers an address, or NULL. If none is known, the maps are read again, unless that was done
 * in vain too often of late. */
const struct mapping *remote_covering(struct remote *remote, uint64_t address);

/* To be called when something seems wrong: a library may have taken the place of another one, whose rules
 * were followed. Says whether there are modules beyond number `newest`, and if not, looks whether there are
 * now, unless that was done in vain too often of late. */
bool remote_changed(struct remote *remote, uint64_t newest);

/* The rule of a pc that is not in the cache. */
struct rule remote_evaluate(struct remote *remote, uint64_t pc);

static inline struct rule remote_rule(struct remote *remote, uint64_t pc) {
    const struct rule *rule = remote_rule_cache_find(remote->rules, pc);
    return __builtin_expect(rule != NULL, 1) ? *rule : remote_evaluate(remote, pc);
}

#endif
