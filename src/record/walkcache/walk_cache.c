#include "record/walkcache/walk_cache.h"

#include "core/sampler.h"
#include "platform/caller_state.h"
#include "platform/pages.h"
#include "platform/system.h"
#include "record/python/python.h"
#include "record/sample/recorder_state.h"
#include "record/walkcache/growing_sets.h"
#include "record/walkcache/read_lists.h"

#include <stdatomic.h>

#define WAYS              4u
#define SETS_SECOND       8192u /* 512 KiB, however few stacks there are */
#define SETS_A_STACK_MOST 4u    /* for each stack of the recording, if they are more; 256 bytes */

/* Native frames that were seen with those of an interpreter only have no stack by themselves; nor have the
 * words up to some page of the stack. */
#define MERGED  (WALK_UNKNOWN - 1)
#define PARTIAL (WALK_UNKNOWN - 2)

struct known_stack {
    uint64_t sum;   /* 0: none */
    uint32_t stack; /* or one of these */
};

struct known_set {
    _Alignas(SET_SIZE) struct known_stack stack[WAYS];
};
static_assert(sizeof(struct known_set) == SET_SIZE, "a set");

#define PASSED_LOG 8

struct walk_cache {
    uint64_t user;                    /* stack pointer of who is using it; 0: nobody */
    struct growing_sets known;        /* of struct known_set */
    uint32_t replaced;                /* sums, by others */
    uint32_t missed;                  /* walks that a larger table may have spared, since it is of its size */
    uint64_t passed[1 << PASSED_LOG]; /* sums that were found to be PARTIAL of late */
    uint64_t factor[TRACE_WORDS], of_fp, of_python, of_around, of_epoch;
    struct unwind_trace trace;
    struct read_lists lists;
    struct known_set first_known[SETS_AT_START];
};

static __thread struct walk_cache *own;

/* Odd ones lose nothing of a word. */
static __attribute__((noinline, cold)) bool make_cache(void) {
    KEEP_CALLER_STATE;
    struct walk_cache *made = pages_take(sizeof *made);
    if (!made) return false;
    uint64_t random[4];
    sampler_random_seed(random, (uintptr_t)made ^ recorder.recording.header->start_monotonic);
    for (uint64_t *factor = made->factor; factor <= &made->of_epoch; factor++)
        *factor = (sampler_random_next(random) ^ sampler_random_next(random) >> 32) | 1;
    growing_sets_start(&made->known, made->first_known);
    read_lists_start(&made->lists);
    own = made;
    return true;
}

/* A handler that interrupted who is using it runs further down the stack, or on a stack of its own. Who does
 * not has found the memory free, or left by a jump out of such a handler; until then who is further down than
 * that goes without. */
static struct walk_cache *enter(uint64_t sp) {
    if ((!own && !make_cache()) || sp < own->user) return NULL;
    if (__builtin_expect(own->user != 0, 0) && system_on_signal_stack()) return NULL;
    own->user = sp;
    atomic_signal_fence(memory_order_seq_cst);
    return own;
}

static void leave(struct walk_cache *used) {
    atomic_signal_fence(memory_order_seq_cst);
    used->user = 0;
}

/* ---- stacks ---- */

static uint64_t mixed(uint64_t sum) {
    return ((sum ^ sum >> 32) * UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

static struct known_stack *known_of(const struct walk_cache *cache, uint64_t sum) {
    return ((struct known_set *)growing_sets_at(&cache->known, sum))->stack;
}

static uint32_t find_known(const struct walk_cache *cache, uint64_t sum) {
    const struct known_stack *known = known_of(cache, sum);
    for (uint32_t i = 0; i < WAYS; i++)
        if (known[i].sum == sum) return known[i].stack;
    return WALK_UNKNOWN;
}

/* A handler may jump out anywhere: no sum is there with another's stack. */
static void keep_known(struct walk_cache *cache, uint64_t sum, uint32_t stack) {
    struct known_stack *known = known_of(cache, sum);
    uint32_t way = 0;
    while (way < WAYS && known[way].sum && known[way].sum != sum) way++;
    if (way == WAYS) way = ++cache->replaced % WAYS;
    known[way].sum = 0;
    atomic_signal_fence(memory_order_seq_cst);
    known[way].stack = stack;
    atomic_signal_fence(memory_order_seq_cst);
    known[way].sum = sum;
}

static void know_more(struct walk_cache *cache, uint64_t sets) {
    struct growing_sets larger;
    if (!growing_sets_make_larger(&cache->known, sets, &larger)) return;
    const struct known_set *set = growing_sets_at(&cache->known, 0),
                           *end = set + growing_sets_count(&cache->known);
    for (; set < end; set++)
        for (uint32_t i = 0; i < WAYS && set->stack[i].sum; i++) {
            struct known_stack *to = ((struct known_set *)growing_sets_at(&larger, set->stack[i].sum))->stack;
            while (to->sum) to++;
            *to = set->stack[i];
        }
    growing_sets_replace(&cache->known, &larger);
}

/* A walk came to this stack, and its sum took the place of another's. Where the recording had the stack
 * already, the walk may have been made for want of room alone. A set for each stack is enough where it has
 * one sum or two; a stack that goes over many pages, or that begins at many, has more. */
static __attribute__((noinline, cold)) void note_replaced(struct walk_cache *cache, uint32_t stack) {
    /* Relaxed: a size to aim at. */
    uint64_t stacks = atomic_load_explicit(&recorder.recording.header->stacks.count, memory_order_relaxed);
    uint64_t enough = UINT64_C(1) << (63 - __builtin_clzll(stacks)), sets = growing_sets_count(&cache->known);
    bool is_new = stack + UINT64_C(1) >= stacks;
    if (is_new || ++cache->missed < sets / 4) return;
    cache->missed = 0;
    if (enough < SETS_SECOND) enough = SETS_SECOND;
    if (sets < enough)
        know_more(cache, enough);
    else if (sets < enough * SETS_A_STACK_MOST)
        know_more(cache, sets * 2);
}

/* ---- sums ---- */

static uint64_t sum_around(const struct walk_cache *cache, const struct read_list *list,
    const struct unwind_registers *registers, uint64_t around) {
    return list->salt + around + (list->uses_fp ? registers->fp * cache->of_fp : 0);
}

/* Whether a former walk, with this sum up to here, went on to the next page of the stack. */
static inline bool goes_on(struct walk_cache *cache, uint64_t sum) {
    uint64_t *passed = &cache->passed[sum >> (64 - PASSED_LOG)];
    if (*passed == sum) return true;
    if (find_known(cache, mixed(sum)) != PARTIAL) return false;
    *passed = sum;
    return true;
}

/* Sums up the words on a list. 0: it cannot be the one. */
__attribute__((no_sanitize("address"))) static uint64_t sum_stack(struct walk_cache *cache,
    const struct read_list *list, const struct unwind_registers *registers, uint64_t around) {
    const uint64_t *stack = (const uint64_t *)registers->sp, *factor = cache->factor;
    const uint32_t *place = list->place, *end = place + list->count;
    uint64_t sum = sum_around(cache, list, registers, around);
    for (uint32_t new_pages = list->new_pages; place < end; new_pages >>= 1) {
        if (__builtin_expect(new_pages & 1, 0) && !goes_on(cache, sum)) return 0;
        sum += stack[place[0]] * factor[0] + stack[place[1]] * factor[1] +
               (stack[place[2]] * factor[2] + stack[place[3]] * factor[3]);
        place += READ_GROUP;
        factor += READ_GROUP;
    }
    return sum;
}

/* The same for a walk that was made, of which it remembers the parts. */
static uint64_t keep_sums(struct walk_cache *cache, const struct read_list *list,
    const struct unwind_trace *trace, const struct unwind_registers *registers, uint64_t around) {
    uint64_t sum = sum_around(cache, list, registers, around);
    for (uint32_t i = 0; i < trace->count; i++) {
        bool is_turn = i % READ_GROUP == 0 && list->new_pages >> i / READ_GROUP & 1;
        if (is_turn) keep_known(cache, mixed(sum), PARTIAL);
        sum += trace->word[i] * cache->factor[i];
    }
    return sum;
}

static uint64_t with_python(const struct walk_lookup *lookup) {
    return mixed(lookup->native + lookup->python * lookup->cache->of_python);
}

/* ---- the whole ---- */

/* The sum of the native frames, and the stack: of them alone, or with Python's, whose signature is known. */
static inline uint32_t find_stack(
    const struct unwind_registers *registers, bool is_merged, struct walk_lookup *lookup) {
    struct walk_cache *cache = lookup->cache;
    struct read_list_set *set = read_lists_set_of(&cache->lists, registers);
    if (is_merged) {
        /* Most likely the words are those of the last time: what is known of the stack comes into the cache
         * while they are summed up. */
        lookup->native = set->sum;
        __builtin_prefetch(known_of(cache, with_python(lookup)));
    }
    for (uint32_t i = 0; i < READ_LISTS_WAYS; i++) {
        uint32_t way = (set->recent - i) % READ_LISTS_WAYS;
        const struct read_list *list = read_lists_get(&cache->lists, set, way, registers);
        if (!list) continue;
        lookup->native = sum_stack(cache, list, registers, lookup->around);
        if (!lookup->native) continue;
        uint32_t stack = find_known(cache, is_merged ? with_python(lookup) : mixed(lookup->native));
        if (stack == WALK_UNKNOWN) continue;
        set->recent = way;
        if (is_merged) set->sum = lookup->native;
        return stack;
    }
    return WALK_UNKNOWN;
}

/* The stack of the native frames decides whether Python's can be read: that it is known tells that the walk
 * comes through no signal frame. */
static uint32_t find_in_turn(
    const struct unwind_registers *registers, bool is_locked, struct walk_lookup *lookup) {
    lookup->python = 0;
    uint32_t stack = find_stack(registers, false, lookup);
    if (stack == WALK_UNKNOWN)
        lookup->trace = &lookup->cache->trace;
    else if (python_is_present) {
        lookup->python = python_fingerprint(is_locked);
        if (lookup->python) stack = find_known(lookup->cache, with_python(lookup));
    }
    return stack == MERGED ? WALK_UNKNOWN : stack;
}

uint32_t walk_cache_find(const struct unwind_registers *registers, const struct thread_record *thread,
    uint64_t around, bool is_locked, struct walk_lookup *ret_lookup) {
    uint64_t epoch = unwind_epoch(), sp = registers->sp;
    ret_lookup->cache = NULL;
    if (!epoch || sp < thread->stack_low || sp >= thread->stack_high) return WALK_UNKNOWN;
    struct walk_cache *cache = enter(sp);
    if (!cache) return WALK_UNKNOWN;
    ret_lookup->cache = cache;
    ret_lookup->trace = NULL;
    ret_lookup->around = around * cache->of_around + epoch * cache->of_epoch;
    uint32_t stack = WALK_UNKNOWN;
    if (is_locked && python_is_present) {
        /* The interpreter does not allocate objects in signal handlers: who does so can read its frames. */
        ret_lookup->python = python_fingerprint(true);
        if (ret_lookup->python) stack = find_stack(registers, true, ret_lookup);
    }
    if (stack == WALK_UNKNOWN) stack = find_in_turn(registers, is_locked, ret_lookup);
    if (stack == WALK_UNKNOWN) return WALK_UNKNOWN;
    leave(cache);
    return stack;
}

/* Not a part of recorder_sample, which is short of registers for what most allocations need. */
__attribute__((noinline)) void walk_cache_keep(
    struct walk_lookup *lookup, const struct unwind_registers *registers, uint32_t stack) {
    struct unwind_trace *trace = lookup->trace;
    struct walk_cache *cache = lookup->cache;
    uint32_t new_pages, replaced = cache->replaced;
    bool is_known =
        !trace || (trace->whole && trace->count && read_lists_align(registers, trace, &new_pages));
    if (stack != WALK_UNKNOWN && is_known) {
        if (trace) {
            const struct read_list *list = read_lists_add(&cache->lists, registers, trace, new_pages);
            lookup->native = keep_sums(cache, list, trace, registers, lookup->around);
        }
        if (lookup->python) {
            if (trace) keep_known(cache, mixed(lookup->native), MERGED);
            keep_known(cache, with_python(lookup), stack);
        } else
            keep_known(cache, mixed(lookup->native), stack);
        if (cache->replaced != replaced) note_replaced(cache, stack);
    }
    leave(cache);
}

void walk_cache_free(void) {
    struct walk_cache *former = own;
    own = NULL; /* first: a signal handler may come in between */
    atomic_signal_fence(memory_order_seq_cst);
    /* Not what is in use further up the stack, should this be a handler that forked. */
    if (former && former->user <= (uintptr_t)__builtin_frame_address(0)) {
        growing_sets_free(&former->known);
        read_lists_free(&former->lists);
        pages_give(former, sizeof *former);
    }
    python_fingerprint_free();
}
