/* The rule cache of one remote process: pc → rule. Of fixed size: a set is one cache line with two rules. A new
 * rule takes the place of the older of the two.
 *
 * Addresses that no mapping covers are not kept, so a new mapping makes no kept rule wrong. When a mapping goes,
 * address_space.c takes its rules out. Unlike unwind/rule_cache.h it is used by one thread, and needs neither check
 * words nor generations. */
#ifndef MALLOSCOPE_ATTACH_REMOTE_REMOTE_RULE_CACHE_H
#define MALLOSCOPE_ATTACH_REMOTE_REMOTE_RULE_CACHE_H

#include "unwind/rule.h"

#define REMOTE_RULE_CACHE_SETS_LOG2 14 /* 32768 rules in 1 MiB, of which only used pages become resident */
#define REMOTE_RULE_CACHE_SETS      (1u << REMOTE_RULE_CACHE_SETS_LOG2)

struct remote_rule_cache {
    struct remote_rule_cache_set {
        _Alignas(64) struct remote_rule_cache_entry {
            uint64_t pc; /* never 0: an empty entry matches nothing */
            struct rule rule;
        } entry[2];
    } set[REMOTE_RULE_CACHE_SETS];
};

static inline struct remote_rule_cache_entry *remote_rule_cache_set_of(
    struct remote_rule_cache *rules, uint64_t pc) {
    return rules->set[pc * UINT64_C(0x9e3779b97f4a7c15) >> (64 - REMOTE_RULE_CACHE_SETS_LOG2)].entry;
}

/* NULL if the cache does not hold it. */
static inline const struct rule *remote_rule_cache_find(struct remote_rule_cache *rules, uint64_t pc) {
    const struct remote_rule_cache_entry *entry = remote_rule_cache_set_of(rules, pc);
    if (entry[0].pc == pc) return &entry[0].rule;
    return entry[1].pc == pc ? &entry[1].rule : NULL;
}

static inline void remote_rule_cache_insert(struct remote_rule_cache *rules, uint64_t pc, struct rule rule) {
    struct remote_rule_cache_entry *entry = remote_rule_cache_set_of(rules, pc);
    entry[1] = entry[0];
    entry[0] = (struct remote_rule_cache_entry){pc, rule};
}

#endif
