#include "hook/memo.h"

#include "core/pages.h"
#include "core/unnoticed.h"
#include "hook/python.h"

#include <stdatomic.h>
#include <stddef.h>

#define SETS_LOG 7 /* 128 sets in 400 KiB, of which only used pages become resident */

/* Two walks that come from the same call of malloc differ in who called its function. */
struct memo_set {
    struct memo_entry entry[2];
};

static __thread struct memo_set *memo;

static __attribute__((noinline, cold)) bool make_memo(void) {
    UNNOTICED;
    memo = pages_take(sizeof(struct memo_set) << SETS_LOG);
    return memo != NULL;
}

static struct memo_set *set_of(const struct unwind_registers *registers) {
    if (!memo && !make_memo()) return NULL;
    uint64_t hash = (registers->pc ^ registers->sp << 20) * UINT64_C(0x9e3779b97f4a7c15);
    return &memo[hash >> (64 - SETS_LOG)];
}

/* The words lie above the stack pointer on a stack that this thread runs on: they can be read. */
__attribute__((no_sanitize("address"))) static bool is_same_walk(const struct memo_entry *entry,
    const struct unwind_registers *registers, uint64_t around, uint64_t epoch) {
    const struct unwind_trace *trace = &entry->trace;
    if (entry->epoch != epoch || !epoch || entry->around != around) return false;
    if (entry->pc != registers->pc || entry->sp != registers->sp || !trace->whole) return false;
    if (trace->uses_fp && entry->fp != registers->fp) return false;
    const uint64_t *stack = (const uint64_t *)registers->sp;
    for (uint32_t i = 0; i < trace->count; i++)
        if (stack[trace->place[i]] != trace->word[i]) return false;
    /* Last: the walk is known by now to come through no signal frame, so that these can be read. */
    python_walk *walk = hook_python_walk;
    return (walk ? walk(NULL) : 0) == entry->python;
}

uint32_t memo_stack(
    const struct unwind_registers *registers, uint64_t around, struct memo_entry **ret_entry) {
    struct memo_set *set = set_of(registers);
    uint64_t epoch = unwind_epoch();
    *ret_entry = NULL;
    if (!set) return MEMO_NONE;
    for (int way = 0; way < 2; way++) {
        if (!is_same_walk(&set->entry[way], registers, around, epoch)) continue;
        set->entry[way ^ 1].recent = false;
        set->entry[way].recent = true;
        return set->entry[way].stack;
    }
    *ret_entry = &set->entry[set->entry[0].recent];
    return MEMO_NONE;
}

/* A handler runs further down the stack (or on another one): it would leave another sp. */
void memo_begin(struct memo_entry *entry, const struct unwind_registers *registers, uint64_t around) {
    entry->pc = 0;
    entry->sp = registers->sp;
    entry->epoch = unwind_epoch();
    entry->around = around;
    atomic_signal_fence(memory_order_seq_cst);
}

void memo_keep(
    struct memo_entry *entry, const struct unwind_registers *registers, uint32_t stack, uint64_t python) {
    atomic_signal_fence(memory_order_seq_cst);
    if (entry->sp != registers->sp || entry->pc != 0) return;
    entry->fp = registers->fp;
    entry->stack = stack;
    entry->python = python;
    atomic_signal_fence(memory_order_seq_cst);
    entry->pc = registers->pc;
}

void memo_free(void) {
    struct memo_set *former = memo;
    memo = NULL; /* first: a signal handler may come in between */
    atomic_signal_fence(memory_order_seq_cst);
    if (former) pages_give(former, sizeof(struct memo_set) << SETS_LOG);
}
