/* The signature of the calling thread's Python frames: in exact mode every allocation asks for it.
 *
 * It is made from the addresses of the instructions that the frames are at, which tell the code too. Where
 * there are few frames all are looked at. Of many, the frames of the last time are remembered with the
 * signature up to each of them:
 *
 *     chain      ─ main ─ rank ─ key ─ less       as it was
 *     frames       main ─ rank ─ key              now: key is at another instruction
 *                  same   same   changed
 *
 * That a frame is as it was says nothing of its callers: another call may have taken the same place. So all
 * are compared, but by addresses that are known before, so that no comparison waits for another; what changes
 * is mostly the innermost. */
#include "platform/caller_state.h"
#include "platform/pages.h"
#include "record/python/python_internals.h"

#include <stdatomic.h>

#define FEW        24u   /* frames that are not worth a chain */
#define CHAIN_MOST 8191u /* deeper stacks are signed frame by frame */
#define PLACES     4096u
#define AHEAD      24 /* links between the frames that are compared and those that are fetched */

struct link {
    const void *frame;
    const void *instruction;
};

struct chain {
    uint64_t deaths; /* of code objects, when it was made */
    uint32_t count;  /* of links behind the first, which stands for the end of the stack */
    bool is_busy;
    uint16_t place[PLACES]; /* by a frame's address, which link it may be */
    struct link link[CHAIN_MOST + 1];
    uint64_t signature[CHAIN_MOST + 1]; /* of a link's frame and its callers: apart from what is compared */
    const void *fresh[CHAIN_MOST];      /* frames that are not in the chain yet, the innermost first */
};

static __thread struct chain *own_chain;

/* ---- code that dies ---- */

/* How many code objects have died. While none does, code is known by its address. */
static _Atomic uint64_t code_deaths;
static void (*_Atomic free_code)(void *code);

#define TYPE_FREE 48 /* in every type: the function that ends its objects */

/* Relaxed: code is freed by a thread that holds the interpreter's lock, and its memory used again by one that
 * held it later; with the lock comes the count. */
static void note_death(void *code) {
    atomic_fetch_add_explicit(&code_deaths, 1, memory_order_relaxed);
    free_code(code);
}

static void (**code_free_slot(void))(void *) {
    return (void (**)(void *))(uintptr_t)((const char *)python.interpreter.code_type + TYPE_FREE);
}

void python_code_deaths_watch(void) {
    atomic_fetch_add_explicit(&code_deaths, 1, memory_order_relaxed); /* some may have died unseen */
    if (*code_free_slot() == note_death) return;
    free_code = *code_free_slot();
    __atomic_store_n(code_free_slot(), note_death, __ATOMIC_RELEASE); /* who finds it finds free_code */
}

void python_code_deaths_unwatch(void) {
    if (python.interpreter.code_type && *code_free_slot() == note_death) *code_free_slot() = free_code;
}

/* ---- frame by frame ---- */

static uint64_t mix(uint64_t signature, uint64_t at) {
    return (signature ^ at) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Multiplied, so as not to be mistaken for a difference of addresses. */
static uint64_t first_signature(uint64_t deaths) {
    return deaths * UINT64_C(0xc2b2ae3d27d4eb4f);
}

/* Up to 3.10. */
static uint64_t sign_objects(const void *frame, uint64_t signature) {
    const struct layout *layout = &python.layout;
    for (int i = 0; frame && i < FRAMES_WALKED; i++) {
        uint64_t instruction = (uint32_t)number_at(frame, layout->frame.instruction);
        signature = mix(signature, (uintptr_t)pointer_at(frame, layout->frame.code) + (instruction << 40));
        frame = pointer_at(frame, layout->frame.previous);
    }
    return signature;
}

/* At most `most` frames, a multiple of four: those behind them begin at `*frame` then. */
static inline uint64_t sign_each(const void **frame, uint32_t most, uint64_t signature) {
    uint16_t previous = python.layout.frame.previous, instruction = python.layout.frame.instruction;
    const void *at = *frame;
    for (; at && most; most -= 4)
#pragma GCC unroll 4
        for (int i = 0; i < 4 && at; i++) {
            signature = mix(signature, (uintptr_t)pointer_at(at, instruction));
            at = pointer_at(at, previous);
        }
    *frame = at;
    return signature;
}

/* ---- by the chain ---- */

static uint16_t *place_of(struct chain *chain, const void *frame) {
    return &chain->place[(uintptr_t)frame / 16 % PLACES];
}

/* The number of the link that was for a frame at this address; 0: none. */
static uint32_t find_link(struct chain *chain, const void *frame) {
    uint32_t number = *place_of(chain, frame);
    return number <= chain->count && chain->link[number].frame == frame ? number : 0;
}

/* The frame is where it was, and was called by the one before it. */
static inline bool is_same(const struct link *link, uint16_t instruction, uint16_t previous) {
    return pointer_at(link->frame, instruction) == link->instruction &&
           pointer_at(link->frame, previous) == link[-1].frame;
}
static inline bool are_four_same(const struct link *link, uint16_t instruction, uint16_t previous) {
    return is_same(link, instruction, previous) && is_same(link - 1, instruction, previous) &&
           is_same(link - 2, instruction, previous) && is_same(link - 3, instruction, previous);
}

/* Goes on to the callers for as long as four at once are as they were. Returns the first link that is to be
 * looked at by itself. */
static inline uint32_t pass_same(
    const struct chain *chain, uint32_t at, uint16_t instruction, uint16_t previous) {
    const struct link *link = &chain->link[at], *first = chain->link;
    while (link - first >= AHEAD + 4 && are_four_same(link, instruction, previous)) {
        /* The frames of a deep recursion do not fit into the nearest cache. */
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) __builtin_prefetch((const char *)link[-AHEAD - i].frame + instruction);
        link -= 4;
    }
    while (link - first > 4 && are_four_same(link, instruction, previous)) link -= 4;
    return (uint32_t)(link - first);
}

/* Whether the callers of the frame of link `number`, which is there, are still those of the links before it.
 * A link's frame is looked at once its callee has told that it is there. Fills in the outermost link whose
 * frame, with the same callers, is at another instruction; `number` + 1 if there is none. The chain ends
 * where it does not fit. */
static bool has_same_callers(struct chain *chain, uint32_t number, uint32_t *ret_changed) {
    uint16_t previous = python.layout.frame.previous, instruction = python.layout.frame.instruction;
    *ret_changed = number + 1;
    for (uint32_t at = pass_same(chain, number, instruction, previous); at;
         at = pass_same(chain, at - 1, instruction, previous)) {
        const struct link *link = &chain->link[at];
        if (pointer_at(link->frame, instruction) != link->instruction) *ret_changed = at;
        if (pointer_at(link->frame, previous) != link[-1].frame) {
            chain->count = at - 1;
            return false;
        }
    }
    return true;
}

static void sign_link(struct chain *chain, uint32_t number) {
    struct link *link = &chain->link[number];
    link->instruction = pointer_at(link->frame, python.layout.frame.instruction);
    chain->signature[number] = mix(chain->signature[number - 1], (uintptr_t)link->instruction);
}

/* 0: the stack is too deep for it. */
static uint64_t sign_chain(struct chain *chain, const void *frame) {
    uint32_t fresh = 0, number = 0, changed = 1;
    for (; frame; frame = pointer_at(frame, python.layout.frame.previous)) {
        number = find_link(chain, frame);
        if (number && has_same_callers(chain, number, &changed)) break;
        number = 0, changed = 1;
        if (fresh == CHAIN_MOST) return 0;
        chain->fresh[fresh++] = frame;
    }
    if (number + fresh > CHAIN_MOST) return 0;
    for (uint32_t i = changed; i <= number; i++) sign_link(chain, i);
    while (fresh) {
        const void *added = chain->fresh[--fresh];
        chain->link[++number].frame = added;
        *place_of(chain, added) = (uint16_t)number;
        sign_link(chain, number);
    }
    chain->count = number;
    return chain->signature[number];
}

static __attribute__((noinline, cold)) struct chain *make_chain(void) {
    KEEP_CALLER_STATE;
    own_chain = pages_take(sizeof(struct chain));
    return own_chain;
}

void python_fingerprint_free(void) {
    struct chain *former = own_chain;
    own_chain = NULL; /* first: a signal handler may come in between */
    atomic_signal_fence(memory_order_seq_cst);
    if (former) pages_give(former, sizeof *former);
}

static __attribute__((noinline)) uint64_t sign_many(const void *top, uint64_t deaths) {
    struct chain *chain = own_chain ? own_chain : make_chain();
    uint64_t signature = 0, first = first_signature(deaths);
    if (chain && !chain->is_busy) { /* busy: this is a signal handler */
        chain->is_busy = true;
        atomic_signal_fence(memory_order_seq_cst);
        if (chain->deaths != deaths) chain->count = 0;
        chain->deaths = deaths;
        chain->signature[0] = first;
        signature = sign_chain(chain, top);
        if (!signature) chain->count = 0;
        atomic_signal_fence(memory_order_seq_cst);
        chain->is_busy = false;
    }
    return (signature ? signature : sign_each(&top, FRAMES_WALKED, first)) | 1;
}

/* One kind of signature for each stack, whatever came before it. */
static uint64_t sign_few(const void *top, uint64_t deaths) {
    const void *rest = top;
    uint64_t signature = sign_each(&rest, FEW, first_signature(deaths));
    return __builtin_expect(rest != NULL, 0) ? sign_many(top, deaths) : signature | 1;
}

static __attribute__((noinline)) uint64_t sign_as_many(const void *top, uint64_t deaths) {
    uint64_t signature = sign_many(top, deaths);
    return own_chain->count > FEW ? signature : sign_few(top, deaths);
}

uint64_t python_sign_frames(bool is_locked) {
    const void *thread = is_locked ? python.interpreter.thread_state() : python_walk_thread();
    if (!thread) return 0;
    const void *top = python_top(thread);
    uint64_t deaths = atomic_load_explicit(&code_deaths, memory_order_relaxed);
    if (__builtin_expect(python.layout.shape < SHAPE_ENTRIES, 0))
        return sign_objects(top, first_signature(deaths)) | 1;
    bool were_many = own_chain && own_chain->count > FEW;
    return were_many ? sign_as_many(top, deaths) : sign_few(top, deaths);
}
