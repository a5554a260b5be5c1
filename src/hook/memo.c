#include "hook/memo.h"

#include "core/pages.h"
#include "core/sampler.h"
#include "core/unnoticed.h"
#include "hook/python.h"
#include "hook/routes.h"
#include "hook/state.h"

#include <stdatomic.h>
#include <string.h>

#define WAYS       4u
#define STACKS_LOG 13 /* 32,768 stacks in 512 KiB: a recursion alone has thousands */
#define SUMMED     4u /* words at once */

/* Native frames that were seen with those of an interpreter only have no stack by themselves. */
#define MERGED (MEMO_NONE - 1)

struct known_stack {
    uint64_t sum;   /* 0: none */
    uint32_t stack; /* or MERGED */
};

struct known_set {
    _Alignas(64) struct known_stack stack[WAYS]; /* a line of the cache */
};

struct memory {
    uint64_t user; /* stack pointer of who is using it; 0: nobody */
    uint32_t replaced;
    uint64_t factor[TRACE_WORDS], of_fp, of_python, of_around, of_epoch;
    struct unwind_trace trace;
    struct routes routes;
    struct known_set known[1 << STACKS_LOG];
};

static __thread struct memory *own;

/* Odd ones lose nothing of a word. */
static __attribute__((noinline, cold)) bool make_memory(void) {
    UNNOTICED;
    struct memory *made = pages_take(sizeof *made);
    if (!made) return false;
    uint64_t random[4];
    random_seed(random, (uintptr_t)made ^ recorder.recording.header->start_monotonic);
    for (uint64_t *factor = made->factor; factor <= &made->of_epoch; factor++)
        *factor = (random_next(random) ^ random_next(random) >> 32) | 1;
    own = made;
    return true;
}

/* A handler that interrupted who is using it runs further down the stack. Who does not has found the memory
 * free, or left by a jump out of such a handler. */
static struct memory *enter(uint64_t sp) {
    if ((!own && !make_memory()) || sp < own->user) return NULL;
    own->user = sp;
    atomic_signal_fence(memory_order_seq_cst);
    return own;
}

static void leave(struct memory *used) {
    atomic_signal_fence(memory_order_seq_cst);
    used->user = 0;
}

/* ---- sums ---- */

static uint64_t sum_around(const struct memory *memory, const struct route *route,
    const struct unwind_registers *registers, uint64_t around) {
    return route->salt + around + (route->uses_fp ? registers->fp * memory->of_fp : 0);
}

/* The stack is the thread's own, and was as large when the route was made: the words can be read. */
__attribute__((no_sanitize("address"))) static uint64_t sum_stack(const struct memory *memory,
    const struct route *route, const struct unwind_registers *registers, uint64_t around) {
    const uint64_t *stack = (const uint64_t *)registers->sp, *factor = memory->factor;
    const uint32_t *place = route->place, *end = place + route->count;
    uint64_t sum = sum_around(memory, route, registers, around), other = 0;
    for (; place < end; place += SUMMED, factor += SUMMED) {
        sum += stack[place[0]] * factor[0] + stack[place[1]] * factor[1];
        other += stack[place[2]] * factor[2] + stack[place[3]] * factor[3];
    }
    return sum + other;
}

static uint64_t sum_trace(const struct memory *memory, const struct route *route,
    const struct unwind_trace *trace, const struct unwind_registers *registers, uint64_t around) {
    uint64_t sum = sum_around(memory, route, registers, around);
    for (uint32_t i = 0; i < trace->count; i++) sum += trace->word[i] * memory->factor[i];
    return sum;
}

/* Words are summed up by so many: the last one is repeated to fill up. */
static void fill_up(struct unwind_trace *trace) {
    for (uint32_t count = trace->count; count % SUMMED; trace->count = ++count) {
        trace->place[count] = trace->place[count - 1];
        trace->word[count] = trace->word[count - 1];
    }
}

/* ---- stacks ---- */

static uint64_t mixed(uint64_t sum) {
    return ((sum ^ sum >> 32) * UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

static uint64_t with_python(const struct memo *memo) {
    return mixed(memo->native + memo->python * memo->memory->of_python);
}

static struct known_stack *known_of(struct memory *memory, uint64_t sum) {
    return memory->known[sum >> (64 - STACKS_LOG)].stack;
}

static uint32_t find_known(struct memory *memory, uint64_t sum) {
    const struct known_stack *known = known_of(memory, sum);
    for (uint32_t i = 0; i < WAYS; i++)
        if (known[i].sum == sum) return known[i].stack;
    return MEMO_NONE;
}

static void keep_known(struct memory *memory, uint64_t sum, uint32_t stack) {
    struct known_stack *known = known_of(memory, sum);
    uint32_t way = 0;
    while (way < WAYS && known[way].sum && known[way].sum != sum) way++;
    if (way == WAYS) way = ++memory->replaced % WAYS;
    known[way] = (struct known_stack){sum, stack};
}

/* ---- the whole ---- */

/* The sum of the native frames, and their stack. */
static uint32_t find_native(const struct unwind_registers *registers, uint64_t top, struct memo *memo) {
    struct routes *routes = &memo->memory->routes;
    struct route_set *set = routes_from(routes, registers, top);
    for (uint32_t i = 0; i < ROUTES_WAYS; i++) {
        uint32_t way = (set->recent - i) % ROUTES_WAYS;
        const struct route *route = route_of(routes, set, way, registers);
        if (!route) continue;
        memo->native = mixed(sum_stack(memo->memory, route, registers, memo->around));
        uint32_t stack = find_known(memo->memory, memo->native);
        if (stack == MEMO_NONE) continue;
        set->recent = way;
        return stack;
    }
    return MEMO_NONE;
}

uint32_t memo_stack(const struct unwind_registers *registers, const struct thread_record *thread,
    uint64_t around, bool is_locked, struct memo *ret_memo) {
    uint64_t epoch = unwind_epoch(), sp = registers->sp;
    ret_memo->memory = NULL;
    if (!epoch || sp < thread->stack_low || sp >= thread->stack_high) return MEMO_NONE;
    struct memory *memory = enter(sp);
    if (!memory) return MEMO_NONE;
    ret_memo->memory = memory;
    ret_memo->trace = NULL;
    ret_memo->around = around * memory->of_around + epoch * memory->of_epoch;
    ret_memo->python = 0;
    uint32_t stack = find_native(registers, thread->stack_high, ret_memo);
    if (stack == MEMO_NONE)
        ret_memo->trace = &memory->trace;
    else if (hook_python_walk) {
        /* The walk is known by now to come through no signal frame, so that these can be read. */
        ret_memo->python = hook_python_sign(is_locked);
        if (ret_memo->python) stack = find_known(memory, with_python(ret_memo));
    }
    if (stack == MEMO_NONE || stack == MERGED) return MEMO_NONE;
    leave(memory);
    return stack;
}

void memo_keep(struct memo *memo, const struct unwind_registers *registers,
    const struct thread_record *thread, uint32_t stack) {
    struct unwind_trace *trace = memo->trace;
    struct memory *memory = memo->memory;
    if (stack != MEMO_NONE && (!trace || (trace->whole && trace->count))) {
        if (trace) {
            fill_up(trace);
            const struct route *route = routes_keep(&memory->routes, registers, trace, thread->stack_high);
            memo->native = mixed(sum_trace(memory, route, trace, registers, memo->around));
        }
        if (memo->python) {
            if (trace) keep_known(memory, memo->native, MERGED);
            keep_known(memory, with_python(memo), stack);
        } else
            keep_known(memory, memo->native, stack);
    }
    leave(memory);
}

void memo_free(void) {
    struct memory *former = own;
    own = NULL; /* first: a signal handler may come in between */
    atomic_signal_fence(memory_order_seq_cst);
    /* Not what is in use still, further up the stack than a handler that forked. */
    if (former && former->user <= (uintptr_t)__builtin_frame_address(0)) pages_give(former, sizeof *former);
    python_thread_ends();
}
