#include "record/walkcache/walk_cache.h"

#include "core/sampler.h"
#include "platform/caller_state.h"
#include "platform/pages.h"
#include "platform/system.h"
#include "record/python/python.h"
#include "record/sample/recorder_state.h"
#include "record/walkcache/growing_sets.h"
#include "record/walkcache/routes.h"

#include <stdatomic.h>

#define WAYS              4u
#define SETS_SECOND       8192u /* 512 KiB, however few stacks there are */
#define SETS_A_STACK_MOST 4u    /* for each stack of the recording, if they are more; 256 bytes */

/* Native frames that were seen with those of an interpreter only have no stack by themselves; nor have the
 * words up to some page of the stack. */
#define MERGED  (MEMO_NONE - 1)
#define PARTIAL (MEMO_NONE - 2)

struct known_stack {
    uint64_t sum;   /* 0: none */
    uint32_t stack; /* or one of these */
};

struct known_set {
    _Alignas(SETS_LINE) struct known_stack stack[WAYS];
};
static_assert(sizeof(struct known_set) == SETS_LINE, "a set");

#define PASSED_LOG 8

struct memory {
    uint64_t user;                    /* stack pointer of who is using it; 0: nobody */
    struct sets known;                /* of struct known_set */
    uint32_t replaced;                /* sums, by others */
    uint32_t missed;                  /* walks that a larger table may have spared, since it is of its size */
    uint64_t passed[1 << PASSED_LOG]; /* sums that were found to be PARTIAL of late */
    uint64_t factor[TRACE_WORDS], of_fp, of_python, of_around, of_epoch;
    struct unwind_trace trace;
    struct routes routes;
    struct known_set first_known[SETS_FIRST];
};

static __thread struct memory *own;

/* Odd ones lose nothing of a word. */
static __attribute__((noinline, cold)) bool make_memory(void) {
    KEEP_CALLER_STATE;
    struct memory *made = pages_take(sizeof *made);
    if (!made) return false;
    uint64_t random[4];
    sampler_random_seed(random, (uintptr_t)made ^ recorder.recording.header->start_monotonic);
    for (uint64_t *factor = made->factor; factor <= &made->of_epoch; factor++)
        *factor = (sampler_random_next(random) ^ sampler_random_next(random) >> 32) | 1;
    growing_sets_start(&made->known, made->first_known);
    routes_start(&made->routes);
    own = made;
    return true;
}

/* A handler that interrupted who is using it runs further down the stack, or on a stack of its own. Who does
 * not has found the memory free, or left by a jump out of such a handler; until then who is further down than
 * that goes without. */
static struct memory *enter(uint64_t sp) {
    if ((!own && !make_memory()) || sp < own->user) return NULL;
    if (__builtin_expect(own->user != 0, 0) && system_on_signal_stack()) return NULL;
    own->user = sp;
    atomic_signal_fence(memory_order_seq_cst);
    return own;
}

static void leave(struct memory *used) {
    atomic_signal_fence(memory_order_seq_cst);
    used->user = 0;
}

/* ---- stacks ---- */

static uint64_t mixed(uint64_t sum) {
    return ((sum ^ sum >> 32) * UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

static struct known_stack *known_of(const struct memory *memory, uint64_t sum) {
    return ((struct known_set *)growing_sets_at(&memory->known, sum))->stack;
}

static uint32_t find_known(const struct memory *memory, uint64_t sum) {
    const struct known_stack *known = known_of(memory, sum);
    for (uint32_t i = 0; i < WAYS; i++)
        if (known[i].sum == sum) return known[i].stack;
    return MEMO_NONE;
}

/* A handler may jump out anywhere: no sum is there with another's stack. */
static void keep_known(struct memory *memory, uint64_t sum, uint32_t stack) {
    struct known_stack *known = known_of(memory, sum);
    uint32_t way = 0;
    while (way < WAYS && known[way].sum && known[way].sum != sum) way++;
    if (way == WAYS) way = ++memory->replaced % WAYS;
    known[way].sum = 0;
    atomic_signal_fence(memory_order_seq_cst);
    known[way].stack = stack;
    atomic_signal_fence(memory_order_seq_cst);
    known[way].sum = sum;
}

static void know_more(struct memory *memory, uint64_t sets) {
    struct sets larger;
    if (!growing_sets_larger(&memory->known, sets, &larger)) return;
    const struct known_set *set = growing_sets_at(&memory->known, 0),
                           *end = set + growing_sets_count(&memory->known);
    for (; set < end; set++)
        for (uint32_t i = 0; i < WAYS && set->stack[i].sum; i++) {
            struct known_stack *to = ((struct known_set *)growing_sets_at(&larger, set->stack[i].sum))->stack;
            while (to->sum) to++;
            *to = set->stack[i];
        }
    growing_sets_replace(&memory->known, &larger);
}

/* A walk came to this stack, and its sum took the place of another's. Where the recording had the stack
 * already, the walk may have been made for want of room alone. A set for each stack is enough where it has
 * one sum or two; a stack that goes over many pages, or that begins at many, has more. */
static __attribute__((noinline, cold)) void note_replaced(struct memory *memory, uint32_t stack) {
    /* Relaxed: a size to aim at. */
    uint64_t stacks = atomic_load_explicit(&recorder.recording.header->stacks.count, memory_order_relaxed);
    uint64_t enough = UINT64_C(1) << (63 - __builtin_clzll(stacks)),
             sets = growing_sets_count(&memory->known);
    bool is_new = stack + UINT64_C(1) >= stacks;
    if (is_new || ++memory->missed < sets / 4) return;
    memory->missed = 0;
    if (enough < SETS_SECOND) enough = SETS_SECOND;
    if (sets < enough)
        know_more(memory, enough);
    else if (sets < enough * SETS_A_STACK_MOST)
        know_more(memory, sets * 2);
}

/* ---- sums ---- */

static uint64_t sum_around(const struct memory *memory, const struct route *route,
    const struct unwind_registers *registers, uint64_t around) {
    return route->salt + around + (route->uses_fp ? registers->fp * memory->of_fp : 0);
}

/* Whether a former walk, with this sum up to here, went on to the next page of the stack. */
static inline bool goes_on(struct memory *memory, uint64_t sum) {
    uint64_t *passed = &memory->passed[sum >> (64 - PASSED_LOG)];
    if (*passed == sum) return true;
    if (find_known(memory, mixed(sum)) != PARTIAL) return false;
    *passed = sum;
    return true;
}

/* Sums up the words on a route. 0: it cannot be the one. */
__attribute__((no_sanitize("address"))) static uint64_t sum_stack(struct memory *memory,
    const struct route *route, const struct unwind_registers *registers, uint64_t around) {
    const uint64_t *stack = (const uint64_t *)registers->sp, *factor = memory->factor;
    const uint32_t *place = route->place, *end = place + route->count;
    uint64_t sum = sum_around(memory, route, registers, around);
    for (uint32_t turns = route->turns; place < end; turns >>= 1) {
        if (__builtin_expect(turns & 1, 0) && !goes_on(memory, sum)) return 0;
        sum += stack[place[0]] * factor[0] + stack[place[1]] * factor[1] +
               (stack[place[2]] * factor[2] + stack[place[3]] * factor[3]);
        place += ROUTE_GROUP;
        factor += ROUTE_GROUP;
    }
    return sum;
}

/* The same for a walk that was made, of which it remembers the parts. */
static uint64_t keep_sums(struct memory *memory, const struct route *route, const struct unwind_trace *trace,
    const struct unwind_registers *registers, uint64_t around) {
    uint64_t sum = sum_around(memory, route, registers, around);
    for (uint32_t i = 0; i < trace->count; i++) {
        bool is_turn = i % ROUTE_GROUP == 0 && route->turns >> i / ROUTE_GROUP & 1;
        if (is_turn) keep_known(memory, mixed(sum), PARTIAL);
        sum += trace->word[i] * memory->factor[i];
    }
    return sum;
}

static uint64_t with_python(const struct memo *memo) {
    return mixed(memo->native + memo->python * memo->memory->of_python);
}

/* ---- the whole ---- */

/* The sum of the native frames, and the stack: of them alone, or with Python's, whose signature is known. */
static inline uint32_t find_stack(
    const struct unwind_registers *registers, bool is_merged, struct memo *memo) {
    struct memory *memory = memo->memory;
    struct route_set *set = routes_from(&memory->routes, registers);
    if (is_merged) {
        /* Most likely the words are those of the last time: what is known of the stack comes into the cache
         * while they are summed up. */
        memo->native = set->sum;
        __builtin_prefetch(known_of(memory, with_python(memo)));
    }
    for (uint32_t i = 0; i < ROUTES_WAYS; i++) {
        uint32_t way = (set->recent - i) % ROUTES_WAYS;
        const struct route *route = route_of(&memory->routes, set, way, registers);
        if (!route) continue;
        memo->native = sum_stack(memory, route, registers, memo->around);
        if (!memo->native) continue;
        uint32_t stack = find_known(memory, is_merged ? with_python(memo) : mixed(memo->native));
        if (stack == MEMO_NONE) continue;
        set->recent = way;
        if (is_merged) set->sum = memo->native;
        return stack;
    }
    return MEMO_NONE;
}

/* The stack of the native frames decides whether Python's can be read: that it is known tells that the walk
 * comes through no signal frame. */
static uint32_t find_in_turn(const struct unwind_registers *registers, bool is_locked, struct memo *memo) {
    memo->python = 0;
    uint32_t stack = find_stack(registers, false, memo);
    if (stack == MEMO_NONE)
        memo->trace = &memo->memory->trace;
    else if (hook_python_walk) {
        memo->python = hook_python_sign(is_locked);
        if (memo->python) stack = find_known(memo->memory, with_python(memo));
    }
    return stack == MERGED ? MEMO_NONE : stack;
}

uint32_t walk_cache_stack(const struct unwind_registers *registers, const struct thread_record *thread,
    uint64_t around, bool is_locked, struct memo *ret_memo) {
    uint64_t epoch = unwind_epoch(), sp = registers->sp;
    ret_memo->memory = NULL;
    if (!epoch || sp < thread->stack_low || sp >= thread->stack_high) return MEMO_NONE;
    struct memory *memory = enter(sp);
    if (!memory) return MEMO_NONE;
    ret_memo->memory = memory;
    ret_memo->trace = NULL;
    ret_memo->around = around * memory->of_around + epoch * memory->of_epoch;
    uint32_t stack = MEMO_NONE;
    if (is_locked && hook_python_walk) {
        /* The interpreter does not allocate objects in signal handlers: who does so can read its frames. */
        ret_memo->python = hook_python_sign(true);
        if (ret_memo->python) stack = find_stack(registers, true, ret_memo);
    }
    if (stack == MEMO_NONE) stack = find_in_turn(registers, is_locked, ret_memo);
    if (stack == MEMO_NONE) return MEMO_NONE;
    leave(memory);
    return stack;
}

/* Not a part of recorder_sample, which is short of registers for what most allocations need. */
__attribute__((noinline)) void walk_cache_keep(
    struct memo *memo, const struct unwind_registers *registers, uint32_t stack) {
    struct unwind_trace *trace = memo->trace;
    struct memory *memory = memo->memory;
    uint32_t turns, replaced = memory->replaced;
    bool is_known = !trace || (trace->whole && trace->count && routes_arrange(registers, trace, &turns));
    if (stack != MEMO_NONE && is_known) {
        if (trace) {
            const struct route *route = routes_keep(&memory->routes, registers, trace, turns);
            memo->native = keep_sums(memory, route, trace, registers, memo->around);
        }
        if (memo->python) {
            if (trace) keep_known(memory, mixed(memo->native), MERGED);
            keep_known(memory, with_python(memo), stack);
        } else
            keep_known(memory, mixed(memo->native), stack);
        if (memory->replaced != replaced) note_replaced(memory, stack);
    }
    leave(memory);
}

void walk_cache_free(void) {
    struct memory *former = own;
    own = NULL; /* first: a signal handler may come in between */
    atomic_signal_fence(memory_order_seq_cst);
    /* Not what is in use further up the stack, should this be a handler that forked. */
    if (former && former->user <= (uintptr_t)__builtin_frame_address(0)) {
        growing_sets_give(&former->known);
        routes_end(&former->routes);
        pages_give(former, sizeof *former);
    }
    python_thread_ends();
}
