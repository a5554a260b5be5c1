#include "record/walkcache/walk_cache.h"

#include "core/sampler.h"
#include "platform/pages.h"
#include "platform/system.h"
#include "record/python/python.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"
#include "record/walkcache/growing_sets.h"
#include "record/walkcache/read_lists.h"

#include <stdatomic.h>

#define WAYS                4u
#define SETS_AFTER_START    8192u /* 512 KiB: the first table that is made, however few stacks there are */
#define SETS_PER_STACK_MOST 4u    /* 256 bytes for each stack of the recording */

/* In the place of a stack's number. */
#define WITH_PYTHON (WALK_UNKNOWN - 1) /* these native frames were only seen together with Python frames */
#define PREFIX      (WALK_UNKNOWN - 2) /* the sum covers the words of a walk up to some page of the stack */

struct known_stack {
    uint64_t hash;  /* 0: none */
    uint32_t stack; /* a number, WITH_PYTHON or PREFIX */
};

struct known_set {
    _Alignas(SET_SIZE) struct known_stack way[WAYS];
};
static_assert(sizeof(struct known_set) == SET_SIZE, "a set is a cache line");

/* The factors of the sum: one for each position in a read list, then these. */
enum {
    FACTOR_FRAME_POINTER = TRACE_WORDS,
    FACTOR_PYTHON,
    FACTOR_CONTEXT,
    FACTOR_EPOCH,
    FACTORS,
};

#define RECENT_LOG 8

struct walk_cache {
    uint64_t user;             /* stack pointer of the look-up that uses the cache; 0: it is free */
    struct growing_sets known; /* of struct known_set */
    uint32_t replaced;         /* hashes that gave way to others */
    uint32_t missed;           /* walks that a larger table might have spared, since it has its size */
    uint64_t recent_prefixes[1 << RECENT_LOG]; /* sums that were found to be prefixes lately */
    uint64_t factor[FACTORS];
    struct unwind_trace trace;
    struct read_lists lists;
    struct known_set first_known[SETS_AT_START];
};

static __thread struct walk_cache *own_cache;

/* What a cache takes at its start: all but the ring of its lists, of which the first step is in use. */
#define START_BYTES (sizeof(struct walk_cache) - READ_LISTS_RING + READ_LISTS_RING_STEP)

static __attribute__((noinline, cold)) bool make_cache(void) {
    if (!growing_sets_take(START_BYTES)) return false;
    struct walk_cache *made = pages_take(sizeof *made);
    if (!made) {
        growing_sets_give(START_BYTES);
        return false;
    }
    uint64_t random[4];
    sampler_random_seed(random, (uintptr_t)made ^ recorder.recording.header->start_monotonic);
    /* Odd factors: multiplication by one is a bijection, so that no bit of a word is lost. */
    for (uint32_t i = 0; i < FACTORS; i++)
        made->factor[i] = (sampler_random_next(random) ^ sampler_random_next(random) >> 32) | 1;
    growing_sets_start(&made->known, made->first_known);
    read_lists_start(&made->lists);
    own_cache = made;
    return true;
}

/* Takes the calling thread's cache, for a look-up at stack pointer `sp`. NULL: there is none, or it is in use.
 *
 * If `user` is not 0, there are three cases:
 *   - sp < user: this is a signal handler that interrupted the user, on the same stack. It goes without.
 *   - The handler runs on an alternate signal stack, which may lie anywhere. It goes without.
 *   - Neither: the user never came back, because a signal handler left by longjmp. The cache is taken over. Until a
 *     look-up with such a high `sp` comes, those further down the stack take the first case, and go without. */
static struct walk_cache *enter(uint64_t sp) {
    if ((!own_cache && !make_cache()) || sp < own_cache->user) return NULL;
    if (__builtin_expect(own_cache->user != 0, 0) && system_on_signal_stack()) return NULL;
    own_cache->user = sp;
    atomic_signal_fence(memory_order_seq_cst);
    return own_cache;
}

static void leave(struct walk_cache *used) {
    atomic_signal_fence(memory_order_seq_cst);
    used->user = 0;
}

/* ---- hashes and their stacks ---- */

/* A hash for the table, from a sum: never 0. */
static uint64_t hash_of(uint64_t sum) {
    return ((sum ^ sum >> 32) * UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

static struct known_stack *known_of(const struct walk_cache *cache, uint64_t hash) {
    return ((struct known_set *)growing_sets_at(&cache->known, hash))->way;
}

static uint32_t find_known(const struct walk_cache *cache, uint64_t hash) {
    const struct known_stack *known = known_of(cache, hash);
    for (uint32_t i = 0; i < WAYS; i++)
        if (known[i].hash == hash) return known[i].stack;
    return WALK_UNKNOWN;
}

/* The order of the stores matters if a signal handler interrupts this and leaves by longjmp: at no moment does a
 * hash stand beside a stack that is not its own. */
static void keep_known(struct walk_cache *cache, uint64_t hash, uint32_t stack) {
    struct known_stack *known = known_of(cache, hash);
    uint32_t way = 0;
    while (way < WAYS && known[way].hash && known[way].hash != hash) way++;
    if (way == WAYS) way = ++cache->replaced % WAYS;
    known[way].hash = 0;
    atomic_signal_fence(memory_order_seq_cst);
    known[way].stack = stack;
    atomic_signal_fence(memory_order_seq_cst);
    known[way].hash = hash;
}

/* ---- growth ---- */

static void grow(struct walk_cache *cache, uint64_t sets) {
    struct growing_sets larger;
    if (!growing_sets_make_larger(&cache->known, sets, &larger)) return;
    const struct known_set *set = growing_sets_at(&cache->known, 0),
                           *end = set + growing_sets_count(&cache->known);
    for (; set < end; set++)
        for (uint32_t i = 0; i < WAYS && set->way[i].hash; i++) {
            struct known_stack *to = ((struct known_set *)growing_sets_at(&larger, set->way[i].hash))->way;
            while (to->hash)
                to++; /* a set of the larger table gets hashes from one set alone: there is room */
            *to = set->way[i];
        }
    growing_sets_replace(&cache->known, &larger);
}

/* A walk came to `stack`, and its hash took the place of another one. If the stack is not new in the recording, the
 * walk may have been made only because its hash had been displaced. When that has happened often, for a quarter of
 * the sets, the table grows:
 *
 *     to one set per stack of the recording, which has room for four hashes, and at least to SETS_AFTER_START
 *     then by doubling, up to SETS_PER_STACK_MOST sets per stack: a stack has more hashes if it spans many pages
 *     (prefixes), or if the program comes to it with many stack pointers */
static __attribute__((noinline, cold)) void note_replaced(struct walk_cache *cache, uint32_t stack) {
    /* Relaxed: a size to aim at. */
    uint64_t stacks = atomic_load_explicit(&recorder.recording.header->stacks.count, memory_order_relaxed);
    uint64_t enough = UINT64_C(1) << (63 - __builtin_clzll(stacks)), sets = growing_sets_count(&cache->known);
    bool is_new = stack + UINT64_C(1) >= stacks;
    if (is_new || ++cache->missed < sets / 4) return;
    cache->missed = 0;
    if (enough < SETS_AFTER_START) enough = SETS_AFTER_START;
    if (sets < enough)
        grow(cache, enough);
    else if (sets < enough * SETS_PER_STACK_MOST)
        grow(cache, sets * 2);
}

/* ---- sums ---- */

/* The part of the sum that comes before the words of the stack. */
static uint64_t sum_start(const struct walk_cache *cache, const struct read_list *list,
    const struct unwind_registers *registers, uint64_t context) {
    return list->salt + context + (list->uses_fp ? registers->fp * cache->factor[FACTOR_FRAME_POINTER] : 0);
}

/* Whether the words that came to this sum are those that a former walk read before it went on to another page of
 * the stack. If so, that page is mapped (READ_GROUP in read_lists.h). */
static inline bool is_prefix(struct walk_cache *cache, uint64_t sum) {
    uint64_t *recent = &cache->recent_prefixes[sum >> (64 - RECENT_LOG)];
    if (*recent == sum) return true;
    if (find_known(cache, hash_of(sum)) != PREFIX) return false;
    *recent = sum;
    return true;
}

/* Reads the words of the list and sums them up. 0: the stack is not one that this list was made for. */
__attribute__((no_sanitize("address"))) static uint64_t sum_stack(struct walk_cache *cache,
    const struct read_list *list, const struct unwind_registers *registers, uint64_t context) {
    const uint64_t *stack = (const uint64_t *)registers->sp, *factor = cache->factor;
    const uint32_t *place = list->place, *end = place + list->count;
    uint64_t sum = sum_start(cache, list, registers, context);
    for (uint32_t new_pages = list->new_pages; place < end; new_pages >>= 1) {
        if (__builtin_expect(new_pages & 1, 0) && !is_prefix(cache, sum)) return 0;
        sum += stack[place[0]] * factor[0] + stack[place[1]] * factor[1] +
               (stack[place[2]] * factor[2] + stack[place[3]] * factor[3]);
        place += READ_GROUP;
        factor += READ_GROUP;
    }
    return sum;
}

/* The sum that sum_stack would come to, from the words that a walk has read. Keeps the prefixes. */
static uint64_t keep_sums(struct walk_cache *cache, const struct read_list *list,
    const struct unwind_trace *trace, const struct unwind_registers *registers, uint64_t context) {
    uint64_t sum = sum_start(cache, list, registers, context);
    for (uint32_t i = 0; i < trace->count; i++) {
        bool is_new_page = i % READ_GROUP == 0 && list->new_pages >> i / READ_GROUP & 1;
        if (is_new_page) keep_known(cache, hash_of(sum), PREFIX);
        sum += trace->word[i] * cache->factor[i];
    }
    return sum;
}

/* The hash of native and Python frames together. */
static uint64_t hash_with_python(const struct walk_lookup *lookup) {
    return hash_of(lookup->native + lookup->python * lookup->cache->factor[FACTOR_PYTHON]);
}

/* ---- the whole ---- */

/* Sums up the native frames into lookup->native, and finds the stack: that of the native frames, or, `with_python`,
 * that of the native frames together with the Python frames, whose fingerprint is in lookup->python. */
static inline uint32_t find_stack(
    const struct unwind_registers *registers, bool with_python, struct walk_lookup *lookup) {
    struct walk_cache *cache = lookup->cache;
    struct read_list_set *set = read_lists_set_of(&cache->lists, registers);
    if (with_python) {
        /* The native frames are most likely those of the last time. So the set of the result can be prefetched while
         * the words are read. */
        lookup->native = set->sum;
        __builtin_prefetch(known_of(cache, hash_with_python(lookup)));
    }
    for (uint32_t i = 0; i < READ_LISTS_WAYS; i++) {
        uint32_t way = (set->recent - i) % READ_LISTS_WAYS;
        const struct read_list *list = read_lists_get(&cache->lists, set, way, registers);
        if (!list) continue;
        lookup->native = sum_stack(cache, list, registers, lookup->context);
        if (!lookup->native) continue;
        uint32_t stack = find_known(cache, with_python ? hash_with_python(lookup) : hash_of(lookup->native));
        if (stack == WALK_UNKNOWN) continue;
        set->recent = way;
        if (with_python) set->sum = lookup->native;
        return stack;
    }
    return WALK_UNKNOWN;
}

/* Finds the native frames first, and reads the Python frames only if they are known. In a signal handler the Python
 * frames cannot be read, because the interpreter may have been changing them. A walk that comes through a signal
 * frame is never kept, so native frames that are known tell that this is no signal handler. */
static uint32_t find_native_first(
    const struct unwind_registers *registers, bool is_locked, struct walk_lookup *lookup) {
    lookup->python = 0;
    uint32_t stack = find_stack(registers, false, lookup);
    if (stack == WALK_UNKNOWN)
        lookup->trace = &lookup->cache->trace;
    else if (python_is_present) {
        lookup->python = python_fingerprint(is_locked);
        if (lookup->python) stack = find_known(lookup->cache, hash_with_python(lookup));
    }
    return stack == WITH_PYTHON ? WALK_UNKNOWN : stack;
}

uint32_t walk_cache_find(const struct unwind_registers *registers, const struct thread_record *thread,
    uint64_t context, bool is_locked, struct walk_lookup *ret_lookup) {
    uint64_t epoch = unwind_epoch(), sp = registers->sp;
    ret_lookup->cache = NULL;
    if (!epoch || sp < thread->stack_low || sp >= thread->stack_high) return WALK_UNKNOWN;
    struct walk_cache *cache = enter(sp);
    if (!cache) return WALK_UNKNOWN;
    ret_lookup->cache = cache;
    ret_lookup->trace = NULL;
    ret_lookup->context = context * cache->factor[FACTOR_CONTEXT] + epoch * cache->factor[FACTOR_EPOCH];
    uint32_t stack = WALK_UNKNOWN;
    if (is_locked && python_is_present) {
        /* The interpreter allocates no objects in signal handlers, so its frames can be read. */
        ret_lookup->python = python_fingerprint(true);
        if (ret_lookup->python) stack = find_stack(registers, true, ret_lookup);
    }
    if (stack == WALK_UNKNOWN) stack = find_native_first(registers, is_locked, ret_lookup);
    if (stack == WALK_UNKNOWN) return WALK_UNKNOWN;
    leave(cache);
    return stack;
}

/* Not inlined into recorder_sample: the path of an allocation whose stack is known needs all registers there. */
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
            lookup->native = keep_sums(cache, list, trace, registers, lookup->context);
        }
        if (lookup->python) {
            if (trace) keep_known(cache, hash_of(lookup->native), WITH_PYTHON);
            keep_known(cache, hash_with_python(lookup), stack);
        } else
            keep_known(cache, hash_of(lookup->native), stack);
        if (cache->replaced != replaced) note_replaced(cache, stack);
    }
    recorder_note_private_bytes();
    leave(cache);
}

void walk_cache_free(void) {
    struct walk_cache *former = own_cache;
    own_cache = NULL; /* first: a signal handler that comes now must not use the memory */
    atomic_signal_fence(memory_order_seq_cst);
    /* If a signal handler has forked, this may be its child, which will return into a look-up further up the stack.
     * That one uses the memory, which therefore stays. */
    if (former && former->user <= (uintptr_t)__builtin_frame_address(0)) {
        growing_sets_free(&former->known);
        read_lists_free(&former->lists);
        pages_give(former, sizeof *former);
        growing_sets_give(START_BYTES);
    }
    python_fingerprint_free();
}

size_t walk_cache_bytes(void) {
    return growing_sets_bytes();
}
