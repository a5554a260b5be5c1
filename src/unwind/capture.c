/* The stack walk inside the profiled program: look up the rule of a pc, apply it, repeat.
 *
 * It follows pc, sp and fp, which is all that compiled code needs. A rule may start from another register (in
 * hand-written assembly such as the dynamic linker's resolver): then the walk begins again and follows all registers
 * that survive calls.
 *
 * Every walk ends. The stack pointer grows with every frame and stays within the bounds of the stack. Only a signal
 * frame may lead to another stack, which is followed at most STACKS_MAX - 1 times. */
#include "core/module_table.h"
#include "core/recording.h"
#include "platform/safe_read.h"
#include "unwind/frame_output.h"
#include "unwind/frame_step.h"
#include "unwind/mapping_list.h"
#include "unwind/rule.h"
#include "unwind/rule_cache.h"
#include "unwind/unwind.h"

#define FOLLOWED_MAX (1u << 18) /* frames followed by one walk, stored or not: a few milliseconds */
#define STACKS_MAX   4          /* stacks that one walk may come to */

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
/* Code that reads the whole stack, also the words that the address sanitizer puts between variables. */
#define READS_STACK __attribute__((no_sanitize("address")))

struct rule_cache_set rule_cache_set[1 << CACHE_SETS_LOG2];

/* ---- The stack ---- */

struct stack {
    struct unwind_bounds bounds;
    uint64_t page; /* the page above bounds.proven that was last found readable */
};

static READS_STACK __attribute__((noinline)) bool stack_read_unproven(
    struct stack *stack, uint64_t address, uint64_t *ret_word) {
    if (address < stack->bounds.low || address >= stack->bounds.high || stack->bounds.high - address < 8 ||
        address % 8 != 0)
        return false;
    if (address / PAGE_SIZE_MIN != stack->page) {
        if (!safe_read_possible(address)) return false;
        stack->page = address / PAGE_SIZE_MIN;
    }
    *ret_word = *(const uint64_t *)address;
    return true;
}

static inline READS_STACK bool stack_read(struct stack *stack, uint64_t address, uint64_t *ret_word) {
    uint64_t offset = address - stack->bounds.low;
    if (LIKELY(offset < stack->bounds.proven - stack->bounds.low && address % 8 == 0)) {
        *ret_word = *(const uint64_t *)address;
        return true;
    }
    return stack_read_unproven(stack, address, ret_word);
}

/* ---- Rules ---- */

/* The word to store for a frame at `pc`, the address of an instruction. A reader looks up the byte before the word's
 * address, so that a return address finds the call in front of it. Where that byte would lie before the function, the
 * word is one more. */
static uint64_t word_in(const struct mapping *mapping, uint64_t pc, struct rule rule) {
    uint64_t address = pc + 1 + rule_begins_function(rule);
    if (mapping->number >= MODULE_BY_ADDRESS) return address;
    uint64_t offset = address - mapping->start + mapping->file_offset;
    return (uint64_t)FRAME_MODULE << FRAME_KIND_SHIFT | mapping->number << FRAME_MODULE_SHIFT | offset;
}

/* The mapping of the instruction before a return address. A return address may be the first address of its mapping
 * (the kernel makes handlers return to the signal trampoline, which nothing calls): then the mapping of the return
 * address itself. */
static bool mapping_of(uint64_t pc, struct mapping *ret_mapping, bool *ret_certain) {
    if (mapping_list_find(pc, ret_mapping, ret_certain)) return true;
    return (pc + 1) % PAGE_SIZE_MIN == 0 && mapping_list_find(pc + 1, ret_mapping, ret_certain);
}

uint64_t unwind_frame_word(uint64_t address) {
    struct mapping mapping;
    bool certain;
    return mapping_of(address - 1, &mapping, &certain) ? word_in(&mapping, address - 1, (struct rule){0})
                                                       : address;
}

/* The rule of a pc that is not in the cache. If the mapping's content is not what the list says, the list is read
 * again, once. */
static __attribute__((noinline)) struct rule rule_find_cold(uint64_t pc, uint64_t *ret_word) {
    struct mapping mapping = {.unread = 0};
    for (int attempt = 0; attempt < 2; attempt++) {
        uint64_t key = rule_cache_key(pc);
        struct rule rule = {.cfa = RULE_OUTSIDE};
        bool certain = true;
        *ret_word = pc + 1;
        if (mapping_of(pc, &mapping, &certain)) {
            if (!rule_evaluate(&mapping, pc, &rule)) {
                mapping_list_distrust();
                continue;
            }
            *ret_word = word_in(&mapping, pc, rule);
        }
        if (certain) rule_cache_insert(pc, key, rule, *ret_word);
        return rule;
    }
    struct rule unknown = {.cfa = RULE_FRAME_POINTER};
    if (mapping.unread) *ret_word = word_in(&mapping, pc, unknown);
    return unknown;
}

/* ---- Prefetching ----
 *
 * Where the program has thrown rules and stack out of the processor's caches, a walk waits for memory again and again:
 * for the rule of a frame, for the words of the stack that the rule names, for the next rule. A thread's stack often
 * is its last one but for a few frames. So the rules of the thread's last walk are prefetched all at once, and so are
 * the PREFETCH_BYTES of stack from the stack pointer on. These are hints: a wrong one costs nothing but the fetch. */

#define PREFETCH_RULES 48u
#define PREFETCH_BYTES 2048u

static __thread struct {
    uint32_t count;
    uint16_t set[PREFETCH_RULES]; /* sets of the rule cache, leaf first */
} last_walk;
static_assert(CACHE_SETS_LOG2 <= 16, "the number of a set fits");

static void prefetch(const struct unwind_registers *registers, struct unwind_bounds bounds) {
    uint64_t end =
        bounds.proven - registers->sp < PREFETCH_BYTES ? bounds.proven : registers->sp + PREFETCH_BYTES;
    for (uint64_t at = registers->sp; at < end; at += 64) __builtin_prefetch((const void *)at);
    for (uint32_t i = 0; i < last_walk.count; i++) __builtin_prefetch(&rule_cache_set[last_walk.set[i]]);
}

static inline void note_rule(uint32_t frame, uint64_t instruction) {
    if (frame >= PREFETCH_RULES) return;
    last_walk.set[frame] = (uint16_t)(rule_cache_set_of(instruction) - rule_cache_set);
    last_walk.count = frame + 1;
}

/* ---- The walk ---- */

static inline void trace_add(struct unwind_trace *trace, uint64_t sp, uint64_t address, uint64_t word) {
    uint64_t place = (address - sp) / 8;
    if (trace->count == TRACE_WORDS || place > UINT32_MAX) {
        trace->whole = false;
        return;
    }
    trace->place[trace->count] = (uint32_t)place;
    trace->word[trace->count++] = word;
}

struct stack_walk {
    struct unwind_trace *trace; /* or NULL */
    struct stack stack;
    struct frame_registers frame; /* the frame that the walk has come to */
    uint64_t start;               /* the stack pointer that the walk began with */
    uint32_t stacks;              /* other stacks that the walk has come to */
    bool all_registers;           /* follow more than sp and fp */
    bool in_handler;              /* the walk has come through a signal frame */
};

/* How a walk ends. */
enum walk_end {
    WALK_COMPLETE, /* at the start of the thread */
    WALK_LOST,     /* before that */
    WALK_MORE_REGISTERS,
    WALK_OVERRUN, /* FOLLOWED_MAX is reached */
};

static inline bool walk_read(struct stack_walk *walk, uint64_t address, uint64_t *ret_word) {
    return stack_read(&walk->stack, address, ret_word);
}

static bool walk_is_code(struct stack_walk *walk, uint64_t address) {
    struct mapping mapping;
    bool certain;
    (void)walk;
    return mapping_list_find(address, &mapping, &certain);
}

static __attribute__((noinline)) enum frame_step step_signal(struct stack_walk *walk) {
    uint64_t handler_sp = walk->frame.base[BASE_SP];
    walk->in_handler = true;
    enum frame_step outcome = frame_step_signal(&walk->frame, walk_read, walk);
    uint64_t sp = walk->frame.base[BASE_SP];
    if (outcome != STEP_ON || (sp > handler_sp && sp < walk->stack.bounds.high)) return outcome;
    /* The handler ran on a stack of its own. */
    if (++walk->stacks == STACKS_MAX || sp + UNWIND_FOREIGN_STACK < sp) return STEP_LOST;
    walk->stack.bounds = (struct unwind_bounds){.low = sp, .high = sp + UNWIND_FOREIGN_STACK, .proven = sp};
    return STEP_ON;
}

static __attribute__((noinline)) enum frame_step step_frame_pointer(struct stack_walk *walk) {
    return frame_step_frame_pointer(&walk->frame, walk_is_code, walk_read, walk);
}

static __attribute__((noinline)) enum frame_step step_epilogue(struct stack_walk *walk) {
    return frame_step_epilogue(&walk->frame, NULL, walk_read, walk);
}

static bool is_lost(enum frame_step outcome) {
    return outcome == STEP_LOST || outcome == STEP_UNREADABLE;
}

static __attribute__((noinline)) enum frame_step step(struct stack_walk *walk, struct rule rule) {
    enum frame_step outcome;
    switch (rule_kind(rule)) {
    case RULE_CALL:
    case RULE_REALIGNED:
        return frame_step_call(&walk->frame, rule, walk->all_registers, walk_read, walk);
    case RULE_SIGNAL:
        return step_signal(walk);
    case RULE_FRAME_POINTER:
        outcome = step_frame_pointer(walk);
        return is_lost(outcome) ? step_epilogue(walk) : outcome;
    case RULE_EPILOGUE:
        outcome = step_epilogue(walk);
        return is_lost(outcome) ? step_frame_pointer(walk) : outcome;
    case RULE_START:
        return STEP_START;
    default:
        return STEP_LOST;
    }
}

/* Whether a rule starts from a register that a walk with sp and fp alone does not know. */
static bool needs_more_registers(const struct stack_walk *walk, struct rule rule) {
    bool is_call = rule_kind(rule) == RULE_CALL || rule_kind(rule) == RULE_REALIGNED;
    return is_call && rule_base(rule) > BASE_FP && !walk->all_registers;
}

/* The common case: a call whose frame is found from sp or fp, on a stack that is known to be readable for `size` bytes
 * from `low` on. False for everything else, which is left to `step`. */
static inline READS_STACK bool step_quick(struct rule rule, uint64_t low, uint64_t size, uint64_t *pc,
    uint64_t *sp, uint64_t *fp, uint64_t *fp_place) {
    if ((rule.cfa & 0xef) != RULE_CALL) return false; /* base 0 or 1: sp or fp */
    uint64_t cfa = (rule.cfa & 0x10 ? *fp : *sp) + (uint64_t)rule_offset(rule);
    uint64_t pc_place = frame_step_return_place(rule, cfa, cfa);
    if (cfa <= *sp || cfa % 8 != 0 || pc_place - low >= size) return false;
    int64_t place = rule_saved_fp(rule);
    if (place != 0) {
        uint64_t saved = cfa + (uint64_t)place * 8;
        if (saved - low >= size || place == RULE_LOST) return false;
        *fp = *(const uint64_t *)saved;
        *fp_place = saved;
    }
    *pc = *(const uint64_t *)pc_place;
    *sp = cfa;
    return true;
}

/* Stands for a frame pointer that is not known. An odd number: `step_quick` refuses a CFA that is not a multiple of
 * 8. */
#define FP_LOST 1

/* A walk depends on the frame pointer only where it finds a frame from it. */
static void trace_fp_use(const struct stack_walk *walk, uint64_t fp, uint64_t fp_place) {
    if (fp_place)
        trace_add(walk->trace, walk->start, fp_place, fp);
    else
        walk->trace->uses_fp = true;
}

static enum walk_end walk_run(struct stack_walk *walk, struct frame_output *output) {
    struct frame_registers *frame = &walk->frame;
    uint64_t pc = frame->pc, sp = frame->base[BASE_SP], fp = frame->base[BASE_FP];
    uint64_t low = walk->stack.bounds.low, size = walk->all_registers ? 0 : walk->stack.bounds.proven - low;
    uint64_t fp_place = 0; /* where fp was read from; 0 = the walk began with it */
    bool interrupted = false;
    for (uint32_t followed = 0; followed < FOLLOWED_MAX; followed++) {
        __asm__("" : "+r"(pc), "+r"(sp), "+r"(fp)); /* in general registers, not halves of a vector */
        if (!frame_step_is_possible(pc)) return pc == 0 && followed ? WALK_COMPLETE : WALK_LOST;
        uint64_t instruction = pc - 1 + interrupted, word;
        note_rule(followed, instruction);
        struct rule rule;
        if (!LIKELY(rule_cache_find(instruction, rule_cache_key(instruction), &rule, &word))) {
            uint64_t found; /* a variable of its own, so that `word` stays in a register */
            rule = rule_find_cold(instruction, &found);
            word = found;
        }
        if (rule_kind(rule) == RULE_OUTSIDE && followed) return WALK_LOST;
        frame_output_store(output, word, sp);
        if (walk->trace && rule_base(rule) == BASE_FP) trace_fp_use(walk, fp, fp_place);
        if (LIKELY(step_quick(rule, low, size, &pc, &sp, &fp, &fp_place))) {
            if (walk->trace) trace_add(walk->trace, walk->start, frame_step_return_place(rule, sp, sp), pc);
            pc = return_address_without_signature(pc);
            interrupted = false;
            continue;
        }

        frame->pc = pc;
        frame->interrupted = interrupted;
        frame->base[BASE_SP] = sp;
        frame->base[BASE_FP] = fp;
        frame->lost = fp == FP_LOST ? frame->lost | 1u << BASE_FP : frame->lost & ~(1u << BASE_FP);
        if (walk->trace && rule_kind(rule) != RULE_START) walk->trace->whole = false;
        if (needs_more_registers(walk, rule)) return WALK_MORE_REGISTERS;
        enum frame_step outcome = step(walk, rule);
        if (outcome != STEP_ON) return outcome == STEP_START ? WALK_COMPLETE : WALK_LOST;
        pc = frame->pc;
        interrupted = frame->interrupted;
        sp = frame->base[BASE_SP];
        fp = frame_step_is_lost(frame, BASE_FP) ? FP_LOST : frame->base[BASE_FP];
        low = walk->stack.bounds.low;
        size =
            walk->all_registers || frame_step_is_lost(frame, BASE_SP) ? 0 : walk->stack.bounds.proven - low;
    }
    return WALK_OVERRUN;
}

static void walk_begin(struct stack_walk *walk, const struct unwind_registers *registers,
    struct unwind_bounds bounds, bool all_registers) {
    walk->stack.bounds = bounds;
    walk->stack.page = ~UINT64_C(0);
    frame_step_begin(&walk->frame, registers);
    walk->start = registers->sp;
    walk->stacks = 0;
    walk->in_handler = false;
    walk->all_registers = all_registers;
}

uint32_t unwind_capture_traced(const struct unwind_registers *registers, struct unwind_bounds bounds,
    uint64_t *frames, uint64_t *places, uint32_t max, bool *ret_complete, bool *ret_in_handler,
    struct unwind_trace *ret_trace) {
    *ret_complete = *ret_in_handler = false;
    if (ret_trace) {
        ret_trace->whole = true;
        ret_trace->uses_fp = false;
        ret_trace->count = 0;
    }
    if (max == 0) return 0;
    if (!LIKELY(mapping_list_is_settled())) mapping_list_settle();
    if (bounds.low > bounds.high) bounds = (struct unwind_bounds){0};
    if (bounds.high - bounds.low < 8) bounds.high = bounds.low;
    if (bounds.proven > bounds.high - 7) bounds.proven = bounds.high - 7;
    if (bounds.proven < bounds.low) bounds.proven = bounds.low;

    prefetch(registers, bounds);
    struct stack_walk walk;
    walk.trace = ret_trace;
    struct frame_output output = {.frames = frames, .places = places, .max = max};
    walk_begin(&walk, registers, bounds, false);
    enum walk_end end = walk_run(&walk, &output);
    if (end == WALK_MORE_REGISTERS) {
        output = (struct frame_output){.frames = frames, .places = places, .max = max};
        walk_begin(&walk, registers, bounds, true);
        end = walk_run(&walk, &output);
    }
    *ret_complete = end == WALK_COMPLETE;
    *ret_in_handler = walk.in_handler;
    if (ret_trace && end != WALK_COMPLETE) ret_trace->whole = false;
    return frame_output_finish(&output, end != WALK_OVERRUN);
}

uint32_t unwind_capture(const struct unwind_registers *registers, struct unwind_bounds bounds,
    uint64_t *frames, uint32_t max, bool *ret_complete) {
    bool in_handler;
    return unwind_capture_traced(registers, bounds, frames, NULL, max, ret_complete, &in_handler, NULL);
}
