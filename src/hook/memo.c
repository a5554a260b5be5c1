#include "hook/memo.h"

#include "core/pages.h"
#include "core/unnoticed.h"
#include "hook/python.h"

#include <stdatomic.h>
#include <stddef.h>

#define SETS_LOG   8 /* 256 sets in 1.6 MiB, of which only used pages become resident */
#define WAYS       4u
#define COMPARED   4u
#define HINTS_LOG  10 /* 16 KiB, likewise */
#define STACKS_LOG 13 /* 512 KiB, likewise: a recursion alone has thousands */

struct memo_set {
    uint32_t recent; /* which entry was used last */
    struct memo_entry entry[WAYS];
};

/* Walks that come from the same call of malloc differ in who called its function: where return addresses of
 * some callers lay when it was last walked from there. They are mostly there again, and tell the set. */
#define HINT_WORDS 4u
#define HINT_NEAR  256u /* further up the stack than this is not looked */

struct hint {
    uint64_t start; /* hash of the registers; 0: none */
    uint16_t place[HINT_WORDS];
};

/* Native frames and the interpreter's, and the stack they are together. */
struct known_stack {
    _Atomic uint64_t frames; /* 0: none */
    _Atomic uint32_t stack;
};

struct known_set {
    _Alignas(64) struct known_stack stack[WAYS]; /* a line of the cache */
};

struct memory {
    struct memo_set set[1 << SETS_LOG];
    struct hint hint[1 << HINTS_LOG];
    struct known_set known[1 << STACKS_LOG];
    uint64_t serial;   /* that was given last */
    uint32_t replaced; /* which of a full set gave way last */
};

static __thread struct memory *memory;

static __attribute__((noinline, cold)) bool make_memory(void) {
    UNNOTICED;
    memory = pages_take(sizeof(struct memory));
    return memory != NULL;
}

static uint64_t start_of(const struct unwind_registers *registers) {
    return ((registers->pc ^ registers->sp << 20) * UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

static struct hint *hint_of(uint64_t start) {
    return &memory->hint[start >> (64 - HINTS_LOG)];
}

/* The words lie above the stack pointer on a stack that this thread runs on: they can be read. */
__attribute__((no_sanitize("address"))) static struct memo_set *set_of(
    const struct unwind_registers *registers) {
    if (!memory && !make_memory()) return NULL;
    uint64_t start = start_of(registers), hash = start;
    const struct hint *hint = hint_of(start);
    const uint64_t *stack = (const uint64_t *)registers->sp;
    if (hint->start == start) {
        uint64_t sum = stack[hint->place[0]] + 3 * stack[hint->place[1]] + 5 * stack[hint->place[2]] +
                       9 * stack[hint->place[3]];
        hash = (start + sum) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return &memory->set[hash >> (64 - SETS_LOG)];
}

static void keep_hint(const struct unwind_registers *registers, const struct unwind_trace *trace) {
    uint64_t start = start_of(registers);
    struct hint *hint = hint_of(start);
    if (hint->start == start || !trace->count) return;
    hint->start = 0;
    atomic_signal_fence(memory_order_seq_cst);
    for (uint32_t i = 0; i < HINT_WORDS; i++) {
        bool is_near = i < trace->count && trace->place[i] < HINT_NEAR;
        hint->place[i] = is_near ? (uint16_t)trace->place[i] : 0;
    }
    atomic_signal_fence(memory_order_seq_cst);
    hint->start = start;
}

__attribute__((no_sanitize("address"))) static bool is_same_walk(const struct memo_entry *entry,
    const struct unwind_registers *registers, uint64_t around, uint64_t epoch) {
    const struct unwind_trace *trace = &entry->trace;
    if ((entry->pc ^ registers->pc) | (entry->sp ^ registers->sp) | (entry->around ^ around) |
        (entry->epoch ^ epoch))
        return false;
    if (trace->uses_fp && entry->fp != registers->fp) return false;
    const uint64_t *stack = (const uint64_t *)registers->sp, *word = trace->word;
    const uint32_t *place = trace->place, *end = place + trace->count;
    /* By four: most of the time all of them are as they were. */
    for (; place < end; place += COMPARED, word += COMPARED)
        if ((stack[place[0]] ^ word[0]) | (stack[place[1]] ^ word[1]) | (stack[place[2]] ^ word[2]) |
            (stack[place[3]] ^ word[3]))
            return false;
    return true;
}

/* Words are compared by so many: the last one is repeated to fill up. */
static void fill_up(struct unwind_trace *trace) {
    for (uint32_t count = trace->count; count % COMPARED; trace->count = ++count) {
        trace->place[count] = trace->place[count - 1];
        trace->word[count] = trace->word[count - 1];
    }
}

static struct memo_entry *find_walk(
    struct memo_set *set, const struct unwind_registers *registers, uint64_t around) {
    uint64_t epoch = unwind_epoch();
    if (!epoch) return NULL;
    for (uint32_t i = 0; i < WAYS; i++) {
        uint32_t way = (set->recent - i) % WAYS;
        if (!is_same_walk(&set->entry[way], registers, around, epoch)) continue;
        set->recent = way;
        return &set->entry[way];
    }
    return NULL;
}

/* ---- with an interpreter ---- */

static uint64_t frames_of(const struct memo *memo) {
    uint64_t both = memo->python * UINT64_C(0xc2b2ae3d27d4eb4f) + memo->entry->serial;
    return ((both ^ both >> 32) * UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

static struct known_stack *known_of(uint64_t frames) {
    return memory->known[frames >> (64 - STACKS_LOG)].stack;
}

static uint64_t frames_known(struct known_stack *known) {
    return atomic_load_explicit(&known->frames, memory_order_relaxed);
}

/* A signal handler may put another one here at any time: the stack is read first and believed last. The
 * memory is the thread's own: relaxed, and fences that only the compiler heeds. */
static uint32_t find_known(uint64_t frames) {
    struct known_stack *known = known_of(frames);
    for (uint32_t i = 0; i < WAYS; i++) {
        uint32_t stack = atomic_load_explicit(&known[i].stack, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
        if (frames_known(&known[i]) == frames) return stack;
    }
    return MEMO_NONE;
}

static struct known_stack *place_for(uint64_t frames) {
    struct known_stack *known = known_of(frames);
    for (uint32_t i = 0; i < WAYS; i++)
        if (!frames_known(&known[i]) || frames_known(&known[i]) == frames) return &known[i];
    return &known[++memory->replaced % WAYS];
}

static void keep_known(uint64_t frames, uint32_t stack) {
    struct known_stack *known = place_for(frames);
    atomic_store_explicit(&known->frames, 0, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&known->stack, stack, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&known->frames, frames, memory_order_relaxed);
}

/* ---- the whole ---- */

uint32_t memo_stack(
    const struct unwind_registers *registers, uint64_t around, bool is_locked, struct memo *ret_memo) {
    struct memo_set *set = set_of(registers);
    *ret_memo = (struct memo){0};
    if (!set) return MEMO_NONE;
    ret_memo->entry = find_walk(set, registers, around);
    ret_memo->is_same = ret_memo->entry != NULL;
    if (!ret_memo->entry) {
        set->recent = (set->recent + 1) % WAYS;
        ret_memo->entry = &set->entry[set->recent];
        return MEMO_NONE;
    }
    /* The walk is known by now to come through no signal frame, so that these can be read. */
    if (hook_python_walk) ret_memo->python = hook_python_sign(is_locked);
    if (ret_memo->entry->python == ret_memo->python) return ret_memo->entry->stack;
    return find_known(frames_of(ret_memo));
}

/* A handler runs further down the stack (or on another one): it would leave another sp. */
void memo_begin(struct memo *memo, const struct unwind_registers *registers, uint64_t around) {
    struct memo_entry *entry = memo->entry;
    entry->pc = 0;
    entry->sp = registers->sp;
    entry->epoch = unwind_epoch();
    entry->around = around;
    entry->serial = ++memory->serial;
    atomic_signal_fence(memory_order_seq_cst);
}

void memo_keep(struct memo *memo, const struct unwind_registers *registers, uint32_t stack) {
    struct memo_entry *entry = memo->entry;
    if (!memo->is_same) {
        atomic_signal_fence(memory_order_seq_cst);
        if (entry->sp != registers->sp || entry->pc != 0 || !entry->trace.whole) return;
        fill_up(&entry->trace);
        entry->fp = registers->fp;
        entry->python = memo->python;
        entry->stack = stack;
        atomic_signal_fence(memory_order_seq_cst);
        entry->pc = registers->pc;
        keep_hint(registers, &entry->trace);
    }
    if (memo->python) keep_known(frames_of(memo), stack);
}

void memo_free(void) {
    struct memory *former = memory;
    memory = NULL; /* first: a signal handler may come in between */
    atomic_signal_fence(memory_order_seq_cst);
    if (former) pages_give(former, sizeof *former);
    python_thread_ends();
}
