/* The rule cache: pc → the rule, and the word by which the frame is stored. Lock-free and of fixed size.
 *
 * A set is one cache line with two entries. An entry has four words: three of content, and a check word that is a
 * hash of the key and the content. The words are written in any order (relaxed). A reader that finds an entry half
 * written finds that the check word does not fit, and takes the entry for a miss.
 *
 * The key holds the pc and the generation of its region (mapping_list.h). When a mapping comes or goes there, the
 * generation changes, and all entries that were derived from the region are missed from then on. */
#ifndef MALLOSCOPE_UNWIND_RULE_CACHE_H
#define MALLOSCOPE_UNWIND_RULE_CACHE_H

#include <stdatomic.h>

#include "unwind/mapping_list.h"
#include "unwind/rule.h"

#define CACHE_SETS_LOG2 13 /* 16384 entries in 512 KiB, of which only used pages become resident */

struct rule_cache_set {
    _Alignas(64) struct cache_entry { _Atomic uint64_t check, cfa, saved, word; } entry[2];
};

extern struct rule_cache_set rule_cache_set[1 << CACHE_SETS_LOG2];

static inline uint64_t rule_cache_key(uint64_t pc) {
    return pc | mapping_list_generation_of(pc) << 48;
}

static inline struct rule_cache_set *rule_cache_set_of(uint64_t pc) {
    return &rule_cache_set[pc * UINT64_C(0x9e3779b97f4a7c15) >> (64 - CACHE_SETS_LOG2)];
}

/* The word is added and not mixed in by exclusive or: it often is pc + 1, and would cancel the pc in the key. */
static inline uint64_t rule_cache_check(uint64_t key, struct rule rule, uint64_t word) {
    return (key ^ rule.cfa ^ rule.saved * UINT64_C(0xff51afd7ed558ccd)) + word;
}

static inline bool rule_cache_entry_matches(
    const struct cache_entry *entry, uint64_t key, struct rule *ret_rule, uint64_t *ret_word) {
    ret_rule->cfa = atomic_load_explicit(&entry->cfa, memory_order_relaxed);
    ret_rule->saved = atomic_load_explicit(&entry->saved, memory_order_relaxed);
    *ret_word = atomic_load_explicit(&entry->word, memory_order_relaxed);
    return atomic_load_explicit(&entry->check, memory_order_relaxed) ==
           rule_cache_check(key, *ret_rule, *ret_word);
}

/* False if the cache does not hold it. `pc` is the address of an instruction, never 0: an empty entry matches no
 * key. */
static inline bool rule_cache_find(uint64_t pc, uint64_t key, struct rule *ret_rule, uint64_t *ret_word) {
    const struct rule_cache_set *set = rule_cache_set_of(pc);
    return rule_cache_entry_matches(&set->entry[0], key, ret_rule, ret_word) ||
           rule_cache_entry_matches(&set->entry[1], key, ret_rule, ret_word);
}

/* Replaces the older of the set's two entries: the first moves to the second place, and the new one becomes the first.
 * `key` is that of the time before the rule was derived. */
static inline void rule_cache_insert(uint64_t pc, uint64_t key, struct rule rule, uint64_t word) {
    struct cache_entry *first = rule_cache_set_of(pc)->entry, *second = first + 1;
    atomic_store_explicit(&second->check, first->check, memory_order_relaxed);
    atomic_store_explicit(&second->cfa, first->cfa, memory_order_relaxed);
    atomic_store_explicit(&second->saved, first->saved, memory_order_relaxed);
    atomic_store_explicit(&second->word, first->word, memory_order_relaxed);
    atomic_store_explicit(&first->check, rule_cache_check(key, rule, word), memory_order_relaxed);
    atomic_store_explicit(&first->cfa, rule.cfa, memory_order_relaxed);
    atomic_store_explicit(&first->saved, rule.saved, memory_order_relaxed);
    atomic_store_explicit(&first->word, word, memory_order_relaxed);
}

#endif
