/* The walk. Two forms of it are compiled from one text: the fast one follows pc, sp and the frame pointer,
 * which is all that compiled code needs; where a rule starts from another register (hand-written assembly
 * such as the dynamic linker's resolver), the walk begins again with all registers that survive calls.
 *
 * It ends: the stack pointer grows with every frame and stays within the bounds; only a signal frame may lead
 * to another stack, and only a few times. */
#include "core/recording.h"
#include "platform/safe_read.h"
#include "unwind/epilogue.h"
#include "unwind/frame_output.h"
#include "unwind/mapping_list.h"
#include "unwind/return_address.h"
#include "unwind/rule.h"
#include "unwind/rule_cache.h"
#include "unwind/unwind.h"

#define WALK_MAX      (1u << 18) /* frames followed, stored or not: a few milliseconds */
#define STACKS_MAX    4          /* that one walk may come through */
#define FOREIGN_STACK (UINT64_C(256) << 20)

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
/* Reads all of the stack, also what the address sanitizer puts between variables. */
#define READS_STACK __attribute__((no_sanitize("address")))

struct rule_cache_set rule_cache_set[1 << CACHE_SETS_LOG2];

/* ---- The stack ---- */

struct stack {
    struct unwind_bounds bounds;
    uint64_t page; /* beyond what is proven: the page that was tried last */
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

/* `pc` is that of an instruction, one byte before the return address. Who looks the word up goes back one
 * byte: where that would be before the function, the word is one more. */
static uint64_t word_in(const struct mapping *mapping, uint64_t pc, struct rule rule) {
    uint64_t address = pc + 1 + rule_begins_function(rule);
    if (mapping->number >= UNWIND_BY_ADDRESS) return address;
    uint64_t offset = address - mapping->start + mapping->file_offset;
    return (uint64_t)FRAME_MODULE << FRAME_KIND_SHIFT | mapping->number << FRAME_MODULE_SHIFT | offset;
}

/* A return address may be the first of a mapping, with nothing before it: that of a signal trampoline. */
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

/* ---- What the next walk needs ----
 *
 * Where the program has thrown all of this out of the processor's caches, a walk waits for the rule of one
 * frame, then for the words that it names, then for the next rule. A thread's stack often is the former one
 * but for a few frames: their rules are asked for all at once, and so is the stack. These are hints. */

#define AHEAD_FRAMES 48u
#define AHEAD_BYTES  2048u

static __thread struct {
    uint32_t count;
    uint16_t set[AHEAD_FRAMES]; /* of rules in the cache */
} former;
static_assert(CACHE_SETS_LOG2 <= 16, "the number of a set fits");

static void look_ahead(const struct unwind_registers *registers, struct unwind_bounds bounds) {
    uint64_t end = bounds.proven - registers->sp < AHEAD_BYTES ? bounds.proven : registers->sp + AHEAD_BYTES;
    for (uint64_t at = registers->sp; at < end; at += 64) __builtin_prefetch((const void *)at);
    for (uint32_t i = 0; i < former.count; i++) __builtin_prefetch(&rule_cache_set[former.set[i]]);
}

static inline void note_rule(uint32_t frame, uint64_t instruction) {
    if (frame >= AHEAD_FRAMES) return;
    former.set[frame] = (uint16_t)(rule_cache_set_of(instruction) - rule_cache_set);
    former.count = frame + 1;
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

struct walk {
    struct unwind_trace *trace; /* or NULL */
    struct stack stack;
    uint64_t pc;
    uint64_t base[BASE_COUNT]; /* sp, fp and the other registers that survive calls, by enum rule_base */
    uint64_t start;            /* the stack pointer that the walk began with */
    uint64_t link;             /* aarch64: x30 of an interrupted frame */
    uint32_t lost;             /* bit set of registers whose value is not known */
    uint32_t stacks;
    bool all_registers; /* follow more than sp and fp */
    bool interrupted;   /* pc is not a return address but where a signal came */
    bool in_handler;    /* it has come through a signal frame */
};

enum step {
    STEP_ON,
    STEP_END,   /* the way is lost */
    STEP_START, /* of the thread */
    STEP_MORE_REGISTERS,
    STEP_OVERRUN,
};

/* Where the kernel saves what was interrupted, from the stack pointer of the trampoline on. */
#if defined(__x86_64__)
enum {
    SIGNAL_PC = 168,
    SIGNAL_LINK = 168,
    SIGNAL_SP = 160,
    SIGNAL_FP = 120,
    SIGNAL_RBX = 128,
    SIGNAL_R12 = 72,
};
#else
enum {
    SIGNAL_PC = 568,
    SIGNAL_LINK = 552,
    SIGNAL_SP = 560,
    SIGNAL_FP = 544,
};
#endif

static __attribute__((noinline)) enum step step_signal(struct walk *walk) {
    uint64_t frame = walk->base[BASE_SP], sp;
    walk->in_handler = true;
    if (!stack_read(&walk->stack, frame + SIGNAL_SP, &sp)) return STEP_END;
    if (!stack_read(&walk->stack, frame + SIGNAL_PC, &walk->pc)) return STEP_END;
    if (!stack_read(&walk->stack, frame + SIGNAL_LINK, &walk->link)) return STEP_END;
    if (!stack_read(&walk->stack, frame + SIGNAL_FP, &walk->base[BASE_FP])) return STEP_END;
#if defined(__x86_64__)
    if (!stack_read(&walk->stack, frame + SIGNAL_RBX, &walk->base[BASE_RBX])) return STEP_END;
    for (unsigned i = 0; i < 4; i++)
        if (!stack_read(&walk->stack, frame + SIGNAL_R12 + 8 * i, &walk->base[BASE_R12 + i])) return STEP_END;
#endif
    if (sp <= frame || sp >= walk->stack.bounds.high) {
        /* The handler ran on a stack of its own. */
        if (++walk->stacks == STACKS_MAX || sp + FOREIGN_STACK < sp) return STEP_END;
        walk->stack.bounds = (struct unwind_bounds){.low = sp, .high = sp + FOREIGN_STACK, .proven = sp};
    }
    walk->base[BASE_SP] = sp;
    walk->lost = 0;
    walk->interrupted = true;
    return STEP_ON;
}

/* Code without unwind information. The frame pointer is believed if it points up the stack and has a return
 * address into code beside it. */
static __attribute__((noinline)) enum step step_frame_pointer(struct walk *walk) {
    uint64_t fp = walk->base[BASE_FP], next, pc;
    struct mapping mapping;
    bool certain;
    if (walk->lost >> BASE_FP & 1) return STEP_END;
    if (fp == 0) return STEP_START;
    if (fp < walk->base[BASE_SP]) return STEP_END;
    if (!stack_read(&walk->stack, fp, &next) || !stack_read(&walk->stack, fp + 8, &pc)) return STEP_END;
    pc = return_address_without_signature(pc);
    if (pc - PC_MIN >= PC_MAX - PC_MIN || !mapping_list_find(pc - 1, &mapping, &certain)) return STEP_END;
    walk->pc = pc;
    walk->base[BASE_SP] = fp + 16;
    walk->base[BASE_FP] = next;
    walk->lost |= ~(1u << BASE_FP);
#if defined(__x86_64__)
    walk->lost &= ~(1u << BASE_SP); /* elsewhere it is only known to be that or more */
#endif
    walk->interrupted = false;
    return STEP_ON;
}

/* The same, where it is about to return. */
static __attribute__((noinline)) enum step step_epilogue(struct walk *walk) {
    struct epilogue epilogue;
    if (!epilogue_read(NULL, walk->pc, &epilogue)) return STEP_END;
    uint64_t sp = walk->base[BASE_SP], pc;
    if (!stack_read(&walk->stack, sp + epilogue.return_place, &pc)) return STEP_END;
    for (unsigned base = BASE_FP; base < BASE_COUNT; base++) { /* all below the return address */
        if (!epilogue.place[base]) continue;
        if (!stack_read(&walk->stack, sp + epilogue.place[base] - 1, &walk->base[base])) return STEP_END;
        walk->lost &= ~(1u << base);
    }
    walk->pc = pc;
    walk->base[BASE_SP] = sp + epilogue.return_place + 8;
    walk->interrupted = false;
    return STEP_ON;
}

static inline void restore(struct walk *walk, unsigned base, uint64_t anchor, int64_t place) {
    if (place == 0) return;
    if (place != RULE_LOST && stack_read(&walk->stack, anchor + (uint64_t)place * 8, &walk->base[base]))
        walk->lost &= ~(1u << base);
    else
        walk->lost |= 1u << base;
}

/* Where the return address lies; 0 = it is in its register. */
static inline uint64_t return_place(struct rule rule, uint64_t cfa, uint64_t anchor) {
#if defined(__x86_64__)
    return cfa - 8;
#else
    return rule_saved_last(rule) ? anchor + (uint64_t)rule_saved_last(rule) * 8 : 0;
#endif
}

/* Of a function whose stack pointer is not known, because the walk came by the frame pointer. That points to
 * where the function keeps its caller's. */
static bool cfa_by_frame_pointer(const struct walk *walk, struct rule rule, uint64_t *ret_cfa) {
    int64_t place = rule_saved_fp(rule);
    if (rule_kind(rule) != RULE_CALL || rule_base(rule) != BASE_SP) return false;
    if (walk->lost >> BASE_FP & 1 || place == 0 || place == RULE_LOST) return false;
    *ret_cfa = walk->base[BASE_FP] - (uint64_t)place * 8;
    return true;
}

static enum step step_call(struct walk *walk, struct rule rule) {
    unsigned base = rule_base(rule);
    if (base > BASE_FP && !walk->all_registers) return STEP_MORE_REGISTERS;
    if (base >= BASE_COUNT) return STEP_END;
    uint64_t value = walk->base[base], cfa = value + (uint64_t)rule_offset(rule);
    if (walk->lost >> base & 1 && !cfa_by_frame_pointer(walk, rule, &cfa)) return STEP_END;
    uint64_t anchor = cfa;
    if (rule_kind(rule) == RULE_REALIGNED) {
        if (!stack_read(&walk->stack, cfa, &cfa)) return STEP_END;
        anchor = value + 8;
    }
    /* A leaf function's frame may be empty, and the return address in its register. */
    uint64_t place = return_place(rule, cfa, anchor);
    bool in_register = place == 0 && walk->interrupted;
    if (cfa < walk->base[BASE_SP] || (cfa == walk->base[BASE_SP] && !in_register)) return STEP_END;
    if (in_register)
        walk->pc = walk->link;
    else if (!stack_read(&walk->stack, place, &walk->pc))
        return STEP_END;
#if defined(__x86_64__)
    if (walk->all_registers) {
        restore(walk, BASE_RBX, anchor, (int16_t)rule.saved);
        restore(walk, BASE_R12, anchor, (int16_t)(rule.saved >> 16));
        restore(walk, BASE_R13, anchor, (int16_t)(rule.saved >> 32));
        restore(walk, BASE_R14, anchor, (int16_t)(rule.saved >> 48));
        restore(walk, BASE_R15, anchor, rule_saved_last(rule));
    }
#endif
    restore(walk, BASE_FP, anchor, rule_saved_fp(rule));
    walk->base[BASE_SP] = cfa;
    walk->lost &= ~(1u << BASE_SP);
    walk->interrupted = false;
    return STEP_ON;
}

static __attribute__((noinline)) enum step step(struct walk *walk, struct rule rule) {
    enum step outcome;
    switch (rule_kind(rule)) {
    case RULE_CALL:
    case RULE_REALIGNED:
        return step_call(walk, rule);
    case RULE_SIGNAL:
        return step_signal(walk);
    case RULE_FRAME_POINTER:
        outcome = step_frame_pointer(walk);
        return outcome == STEP_END ? step_epilogue(walk) : outcome;
    case RULE_EPILOGUE:
        outcome = step_epilogue(walk);
        return outcome == STEP_END ? step_frame_pointer(walk) : outcome;
    case RULE_START:
        return STEP_START;
    default:
        return STEP_END;
    }
}

/* The common case: a call, its frame found from sp or fp, on a stack that is known to be readable for `size`
 * bytes from `low` on. Whatever else there is gives false and is left to `step`. */
static inline READS_STACK bool step_quick(struct rule rule, uint64_t low, uint64_t size, uint64_t *pc,
    uint64_t *sp, uint64_t *fp, uint64_t *fp_place) {
    if ((rule.cfa & 0xef) != RULE_CALL) return false; /* base 0 or 1: sp or fp */
    uint64_t cfa = (rule.cfa & 0x10 ? *fp : *sp) + (uint64_t)rule_offset(rule);
    uint64_t pc_place = return_place(rule, cfa, cfa);
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

/* A frame pointer that is not known is an odd number, for which `step_quick` has no use. */
#define FP_LOST 1

/* The frame pointer matters to a walk only where a frame is found from it. */
static void trace_fp_use(const struct walk *walk, uint64_t fp, uint64_t fp_place) {
    if (fp_place)
        trace_add(walk->trace, walk->start, fp_place, fp);
    else
        walk->trace->uses_fp = true;
}

static enum step walk_run(struct walk *walk, struct frame_output *output) {
    uint64_t pc = walk->pc, sp = walk->base[BASE_SP], fp = walk->base[BASE_FP];
    uint64_t low = walk->stack.bounds.low, size = walk->all_registers ? 0 : walk->stack.bounds.proven - low;
    uint64_t fp_place = 0; /* where fp was read from; 0 = it is the first one */
    bool interrupted = false;
    for (uint32_t followed = 0; followed < WALK_MAX; followed++) {
        __asm__("" : "+r"(pc), "+r"(sp), "+r"(fp)); /* in general registers, not halves of a vector */
        if (pc - PC_MIN >= PC_MAX - PC_MIN) return pc == 0 && followed ? STEP_START : STEP_END;
        uint64_t instruction = pc - 1 + interrupted, word;
        note_rule(followed, instruction);
        struct rule rule;
        if (!LIKELY(rule_cache_find(instruction, rule_cache_key(instruction), &rule, &word))) {
            uint64_t found; /* a variable of its own, so that `word` stays in a register */
            rule = rule_find_cold(instruction, &found);
            word = found;
        }
        if (rule_kind(rule) == RULE_OUTSIDE && followed) return STEP_END;
        frame_output_store(output, word, sp);
        if (walk->trace && rule_base(rule) == BASE_FP) trace_fp_use(walk, fp, fp_place);
        if (LIKELY(step_quick(rule, low, size, &pc, &sp, &fp, &fp_place))) {
            if (walk->trace) trace_add(walk->trace, walk->start, return_place(rule, sp, sp), pc);
            pc = return_address_without_signature(pc);
            interrupted = false;
            continue;
        }

        walk->pc = pc;
        walk->interrupted = interrupted;
        walk->base[BASE_SP] = sp;
        walk->base[BASE_FP] = fp;
        walk->lost = fp == FP_LOST ? walk->lost | 1u << BASE_FP : walk->lost & ~(1u << BASE_FP);
        if (walk->trace && rule_kind(rule) != RULE_START) walk->trace->whole = false;
        enum step outcome = step(walk, rule);
        if (outcome != STEP_ON) return outcome;
        pc = return_address_without_signature(walk->pc);
        interrupted = walk->interrupted;
        sp = walk->base[BASE_SP];
        fp = walk->lost >> BASE_FP & 1 ? FP_LOST : walk->base[BASE_FP];
        low = walk->stack.bounds.low;
        size = walk->all_registers || walk->lost >> BASE_SP & 1 ? 0 : walk->stack.bounds.proven - low;
    }
    return STEP_OVERRUN;
}

static void walk_begin(struct walk *walk, const struct unwind_registers *registers,
    struct unwind_bounds bounds, bool all_registers) {
    walk->stack.bounds = bounds;
    walk->stack.page = ~UINT64_C(0);
    walk->pc = registers->pc;
    walk->base[BASE_SP] = registers->sp;
    walk->base[BASE_FP] = registers->fp;
#if defined(__x86_64__)
    walk->base[BASE_RBX] = registers->rbx;
    walk->base[BASE_R12] = registers->r12;
    walk->base[BASE_R13] = registers->r13;
    walk->base[BASE_R14] = registers->r14;
    walk->base[BASE_R15] = registers->r15;
#endif
    walk->start = registers->sp;
    walk->lost = 0;
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

    look_ahead(registers, bounds);
    struct walk walk;
    walk.trace = ret_trace;
    struct frame_output output = {.frames = frames, .places = places, .max = max};
    walk_begin(&walk, registers, bounds, false);
    enum step end = walk_run(&walk, &output);
    if (end == STEP_MORE_REGISTERS) {
        output = (struct frame_output){.frames = frames, .places = places, .max = max};
        walk_begin(&walk, registers, bounds, true);
        end = walk_run(&walk, &output);
    }
    *ret_complete = end == STEP_START;
    *ret_in_handler = walk.in_handler;
    if (ret_trace && end != STEP_START) ret_trace->whole = false;
    return frame_output_finish(&output, end != STEP_OVERRUN);
}

uint32_t unwind_capture(const struct unwind_registers *registers, struct unwind_bounds bounds,
    uint64_t *frames, uint32_t max, bool *ret_complete) {
    bool in_handler;
    return unwind_capture_traced(registers, bounds, frames, NULL, max, ret_complete, &in_handler, NULL);
}
