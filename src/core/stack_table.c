#include "core/stack_table.h"

#include "core/table.h"

#include <string.h>

#define STACKS_FIRST    16
#define INDEX_FIRST_LOG 7
#define PROBE_MAX       128 /* places of the index that a search visits */
#define STACKS_MOST     (UINT32_MAX - 1)
#define FOLD_INNER      12
#define FOLD_OUTER      4

/* tests/models/stack_table.pml has every step of this file but folding: change both. */

static _Atomic uint32_t index_growing; /* 1 while a thread of this process builds a larger index */

void stack_table_after_fork(void) {
    /* Relaxed: the child has one thread. */
    atomic_store_explicit(&index_growing, 0, memory_order_relaxed);
}

static uint64_t hash_key(const struct stack_key *key) {
    uint64_t h = (uint64_t)key->heap << 48 ^ (uint64_t)key->type << 16 ^ key->frame_count;
    for (uint32_t i = 0; i < key->frame_count; i++) {
        h = (h ^ key->frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h;
}

struct stack_record *stack_table_get(struct recording *recording, uint32_t stack) {
    return table_mapped(recording, &recording->header->stacks, &recording->stacks, STACKS_FIRST,
        sizeof(struct stack_record), stack);
}

static bool is_same(
    struct recording *recording, const struct stack_record *record, const struct stack_key *key) {
    return record->frame_count == key->frame_count && record->heap == key->heap &&
           record->type == key->type &&
           memcmp(arena_at(recording, record->frames), key->frames, key->frame_count * sizeof *key->frames) ==
               0;
}

static _Atomic uint32_t *index_places(struct recording *recording, uint64_t word, uint64_t *ret_mask) {
    *ret_mask = (UINT64_C(1) << (word & 0xff)) - 1;
    return arena_at(recording, word >> 8);
}

/* Adds the stacks from number `from` on to an index, without looking for equal ones. Returns the number to go on
 * with. */
static uint64_t index_put(struct recording *recording, uint64_t word, uint64_t from) {
    /* Acquire: pairs with the release in table_append_many, so the segments of the counted records are seen. */
    uint64_t mask, to = atomic_load_explicit(&recording->header->stacks.count, memory_order_acquire);
    _Atomic uint32_t *places = index_places(recording, word, &mask);
    for (uint64_t stack = from; stack < to; stack++) {
        struct stack_record *record = stack_table_get(recording, (uint32_t)stack);
        /* Acquire: pairs with the release in add_stack. The record is seen filled; by the release below, so does a
         * thread that finds it through this index. */
        if (!__atomic_load_n(&record->frame_count, __ATOMIC_ACQUIRE)) continue;
        uint64_t place = record->hash & mask, tries = 0;
        for (uint32_t empty = 0; tries < PROBE_MAX; place = (place + 1) & mask, tries++, empty = 0)
            /* Relaxed where it fails: the record that has the place is not read. */
            if (atomic_compare_exchange_strong_explicit(
                    &places[place], &empty, (uint32_t)stack + 1, memory_order_release, memory_order_relaxed))
                break;
    }
    return to;
}

/* Builds a larger index, unless another thread is doing so or has replaced the index `word` already. An index is
 * kept at most half full, so that a free place is near. A stack for which no place is found gets a second record
 * the next time. */
static void index_grow(struct recording *recording, uint64_t word) {
    /* Acquire: pairs with the release at the end. This thread sees the index that the last thread built. */
    if (atomic_exchange_explicit(&index_growing, 1, memory_order_acquire)) return;
    struct recording_header *header = recording->header;
    uint64_t bits = (word & 0xff) + 1, offset = 0;
    /* Relaxed: the count is only a size to aim at, and stack_index is changed only by the thread that holds
     * index_growing. */
    while (UINT64_C(1) << bits < 2 * atomic_load_explicit(&header->stacks.count, memory_order_relaxed))
        bits++;
    if (atomic_load_explicit(&header->stack_index, memory_order_relaxed) == word)
        offset = arena_allocate(recording, sizeof(uint32_t) << bits, 64);
    if (offset) {
        uint64_t larger = offset << 8 | bits;
        uint64_t done = 1;
        /* Other threads go on adding stacks to the old index. They are added here in a few rounds before the new
         * index is published, and once more after that. */
        for (int round = 0; round < 4; round++) done = index_put(recording, larger, done);
        /* Release: a thread that acquires stack_index sees what is in the index. */
        atomic_store_explicit(&header->stack_index, larger, memory_order_release);
        index_put(recording, larger, done);
    }
    /* Release: pairs with the acquire above. */
    atomic_store_explicit(&index_growing, 0, memory_order_release);
}

/* Makes a record with its frames. It is not in the index yet. STACK_DROPPED if there is no room. */
static uint32_t add_stack(struct recording *recording, const struct stack_key *key, uint64_t hash) {
    uint64_t size = key->frame_count * sizeof *key->frames;
    uint64_t offset = arena_allocate(recording, size, sizeof *key->frames);
    if (!offset) return STACK_DROPPED;
    uint64_t stack = table_append(recording, &recording->header->stacks, STACKS_MOST);
    if (stack == UINT64_MAX) return STACK_DROPPED;
    memcpy(arena_at(recording, offset), key->frames, size);
    struct stack_record *record = stack_table_get(recording, (uint32_t)stack);
    /* Relaxed: the release of frame_count publishes them. Atomic, since a reader may be copying the record before
     * that. */
    __atomic_store_n(&record->hash, hash, __ATOMIC_RELAXED);
    __atomic_store_n(&record->frames, offset, __ATOMIC_RELAXED);
    __atomic_store_n(&record->flags, key->flags, __ATOMIC_RELAXED);
    __atomic_store_n(&record->heap, key->heap, __ATOMIC_RELAXED);
    __atomic_store_n(&record->type, key->type, __ATOMIC_RELAXED);
    /* Release: a reader that acquires a frame_count other than 0 sees the record and its frames. */
    __atomic_store_n(&record->frame_count, key->frame_count, __ATOMIC_RELEASE);
    return (uint32_t)stack;
}

/* The number of a stack, which is added if it is new and `may_add` is set. STACK_DROPPED: it is new, and was not
 * added. */
static uint32_t intern(struct recording *recording, const struct stack_key *key, bool may_add) {
    struct recording_header *header = recording->header;
    uint64_t hash = hash_key(key), mask;
    /* Acquire: pairs with the release in index_grow, so the index is seen as it was published. If the thread still
     * loads an older index, the worst is a second record for a stack. */
    uint64_t word = atomic_load_explicit(&header->stack_index, memory_order_acquire);
    _Atomic uint32_t *places = index_places(recording, word, &mask);
    uint32_t added = STACK_DROPPED;

    for (uint64_t place = hash & mask, tries = 0; tries < PROBE_MAX; place = (place + 1) & mask, tries++) {
        /* Acquire, here and where the exchange fails: pairs with the release below, or with that in index_put, so
         * the record is seen filled. */
        uint32_t found = atomic_load_explicit(&places[place], memory_order_acquire);
        if (found == 0) {
            if (added == STACK_DROPPED && may_add) added = add_stack(recording, key, hash);
            if (added == STACK_DROPPED) return STACK_DROPPED;
            /* Release: pairs with the acquire above in another thread. */
            if (atomic_compare_exchange_strong_explicit(
                    &places[place], &found, added + 1, memory_order_release, memory_order_acquire))
                break;
            /* Another thread took the place. If it has the same stack, its record is used; the one made here stays
             * without figures. */
        }
        struct stack_record *record = stack_table_get(recording, found - 1);
        if (record->hash == hash && is_same(recording, record, key)) return found - 1;
    }
    /* PROBE_MAX places are all taken: the index is crowded, because the thread that builds a larger one is held up. The
     * stack gets a record all the same, and that thread adds it to the new index. */
    if (added == STACK_DROPPED && may_add) added = add_stack(recording, key, hash);
    if (added == STACK_DROPPED) return STACK_DROPPED;
    if (added > mask / 2) index_grow(recording, word);
    return added;
}

/* ---- folding ---- */

static const struct {
    uint64_t eighths; /* of arena_limit: below this, new stacks are kept like this */
    uint32_t inner, outer;
} folds[] = {{4, UINT32_MAX, 0}, {5, FOLD_INNER, FOLD_OUTER}, {6, 3, 1}};
#define FOLDS (sizeof folds / sizeof *folds)

/* How a new stack is to be kept at the present size of the recording: an index of `folds`, or FOLDS: not at all. */
static uint32_t fold_now(const struct recording *recording) {
    /* Relaxed: a size by which nothing else is ordered. */
    uint64_t used = atomic_load_explicit(&recording->header->arena_used, memory_order_relaxed);
    uint64_t eighth = arena_limit(recording) / 8;
    uint32_t fold = 0;
    while (fold < FOLDS && used >= eighth * folds[fold].eighths) fold++;
    return fold;
}

/* Makes a key of the inner and the outer frames in `frames`, with a word between them that says that frames are
 * missing. False: the stack has no more frames than that. */
static bool fold_key(
    const struct stack_key *key, uint32_t fold, uint64_t *frames, struct stack_key *ret_folded) {
    uint32_t inner = folds[fold].inner, outer = folds[fold].outer;
    if (inner == UINT32_MAX || key->frame_count <= inner + 1 + outer) return false;
    memcpy(frames, key->frames, inner * sizeof *frames);
    frames[inner] = (uint64_t)FRAME_CUT << FRAME_KIND_SHIFT;
    memcpy(frames + inner + 1, key->frames + key->frame_count - outer, outer * sizeof *frames);
    *ret_folded = *key;
    ret_folded->frames = frames;
    ret_folded->frame_count = inner + 1 + outer;
    ret_folded->flags |= STACK_CUT | STACK_FOLDED;
    return true;
}

/* Called for a stack that is new, when it may not be kept whole. */
static __attribute__((noinline, cold)) uint32_t intern_folded(
    struct recording *recording, const struct stack_key *key) {
    uint64_t frames[FOLD_INNER + 1 + FOLD_OUTER];
    struct stack_key folded;
    /* A stack that was folded when there was more room is known, and costs nothing. */
    for (uint32_t fold = 1; fold < FOLDS; fold++) {
        bool is_shorter = fold_key(key, fold, frames, &folded);
        bool may_add = fold >= fold_now(recording);
        if (!is_shorter && !may_add) continue;
        uint32_t stack = intern(recording, is_shorter ? &folded : key, may_add);
        if (stack != STACK_DROPPED) return stack;
    }
    return STACK_DROPPED;
}

uint32_t stack_table_intern(struct recording *recording, const struct stack_key *key) {
    if (key->frame_count == 0) return STACK_DROPPED;
    uint32_t stack = intern(recording, key, fold_now(recording) == 0);
    if (stack == STACK_DROPPED) stack = intern_folded(recording, key);
    /* Relaxed: a counter by which nothing else is ordered. */
    if (stack == STACK_DROPPED)
        atomic_fetch_add_explicit(&recording->header->drops[DROP_STACK_TABLE], 1, memory_order_relaxed);
    return stack;
}

bool stack_table_start(struct recording *recording) {
    struct recording_header *header = recording->header;
    table_start(&header->stacks, sizeof(struct stack_record), STACKS_FIRST);
    uint64_t offset = arena_allocate(recording, sizeof(uint32_t) << INDEX_FIRST_LOG, 64);
    if (!offset || table_append(recording, &header->stacks, 1) != STACK_DROPPED) return false;
    /* Release, as in index_grow, though no other thread knows the recording yet. */
    atomic_store_explicit(&header->stack_index, offset << 8 | INDEX_FIRST_LOG, memory_order_release);
    return true;
}
