#include "core/live_table.h"

#include "platform/counter.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* tests/models/live_table.pml has every step of this file: change both. */

#define SPARE_MOST 256 /* free slots that a thread keeps in its list */
#define SLOTS_MOST (UINT32_MAX - LIVE_FIRST)

/* The head of a list is one word. Lower half: the first slot + 1, or 0 for an empty list. Upper half: a count of
 * removals. Without that count, a compare and swap would take a list for unchanged whose first slot was removed and
 * put back meanwhile, with another list behind it (the ABA problem). */
#define HEAD_SLOT(head)    ((uint32_t)(head))
#define HEAD_REMOVAL       (UINT64_C(1) << 32)
#define HEAD_COUNT(head)   ((head) & ~(HEAD_REMOVAL - 1))
#define HEAD(count, first) (HEAD_COUNT(count) | (first))

/* What a free slot holds in the place of size and birth. Slots are named by their number + 1, 0 = none, as in a
 * head. */
struct links {
    uint32_t next;       /* the next slot of its chain */
    uint32_t next_chain; /* in the first slot of a chain in the pool: the first slot of the next chain */
    int64_t length;      /* in the first slot of a chain in the pool: about how many slots it has */
};
static_assert(offsetof(struct live_entry, stack) - offsetof(struct live_entry, size) == sizeof(struct links),
    "the links fit in the place of size and birth");

static struct links *links_of(struct live_entry *entry) {
    return (struct links *)&entry->size;
}
/* Links are written atomically, because two kinds of late readers may be reading the same words: live_table_copy, which
 * still looks at the entry that was there, and pool_take, which looks at a chain that another thread has taken. Both
 * discard what they read. Relaxed: it is the head of a list that hands the slots over to another thread. */
static void link_slot(struct links *links, uint32_t next) {
    __atomic_store_n(&links->next, next, __ATOMIC_RELAXED);
}
static void link_chain(struct links *links, uint32_t next_chain) {
    __atomic_store_n(&links->next_chain, next_chain, __ATOMIC_RELAXED);
}
static struct links *links_at(struct recording *recording, uint32_t number) {
    return links_of(live_table_at(recording, number - 1));
}

void live_table_start(struct recording *recording) {
    table_start(&recording->header->live, sizeof(struct live_entry), LIVE_FIRST);
}

/* ---- the pool ---- */

static __attribute__((noinline)) void pool_give(struct recording *recording, uint32_t chain, int64_t length) {
    _Atomic uint64_t *pool = &recording->header->live_pool;
    /* Relaxed: the slot in the head is only linked to, not read. */
    uint64_t head = atomic_load_explicit(pool, memory_order_relaxed);
    struct links *links = links_at(recording, chain);
    __atomic_store_n(&links->length, length > 0 ? length : 1, __ATOMIC_RELAXED); /* as link_slot */
    do link_chain(links, HEAD_SLOT(head));
    /* Release: pairs with the acquire in pool_take. The thread that takes the chain sees its links. */
    while (!atomic_compare_exchange_weak_explicit(
        pool, &head, HEAD(head, chain), memory_order_release, memory_order_relaxed));
}

static uint32_t pool_take(struct recording *recording) {
    _Atomic uint64_t *pool = &recording->header->live_pool;
    /* Acquire, here and where the exchange fails: pairs with the release in pool_give, so the chain's links are
     * seen as its giver left them. Where the exchange succeeds: this thread's writes to the slots come after what
     * the giver read and wrote there. */
    uint64_t head = atomic_load_explicit(pool, memory_order_acquire), rest;
    do {
        if (!HEAD_SLOT(head)) return 0;
        /* Another thread may take the chain meanwhile and use its slots. Then the head has changed, the exchange
         * fails, and what is read here is discarded. So relaxed is enough; atomic, since the other thread may be
         * writing it. */
        uint32_t *next = &links_at(recording, HEAD_SLOT(head))->next_chain;
        rest = HEAD(head + HEAD_REMOVAL, __atomic_load_n(next, __ATOMIC_RELAXED));
    } while (!atomic_compare_exchange_weak_explicit(
        pool, &head, rest, memory_order_acquire, memory_order_acquire));
    return HEAD_SLOT(head);
}

/* ---- a thread's list ----
 *
 * Only the thread and its signal handlers change the list. So its head needs no memory order towards other threads,
 * and links may be read plainly: the thread sees whatever a handler did in between. Slots come from other threads
 * only through the pool, or with a block that the program hands from one thread to another. */

/* Puts the chain from slot `first` to the slot with the links `last` in front of the list. */
static void list_put(struct thread_record *thread, uint32_t first, struct links *last) {
    uint64_t head = counter_load(&thread->spare);
    do link_slot(last, HEAD_SLOT(head));
    while (!counter_exchange(&thread->spare, &head, HEAD(head, first)));
}

/* Makes LIVE_FIRST new slots. Returns the first; the others go to the thread's list. */
static uint32_t make_slots(struct recording *recording, struct thread_record *thread) {
    uint64_t first = table_append_many(recording, &recording->header->live, LIVE_FIRST, SLOTS_MOST);
    if (first == UINT64_MAX) return LIVE_NONE;
    struct live_entry *entry = live_table_at(recording, (uint32_t)first);
    for (uint32_t i = 1; i < LIVE_FIRST - 1; i++) link_slot(links_of(&entry[i]), (uint32_t)first + i + 2);
    list_put(thread, (uint32_t)first + 2, links_of(&entry[LIVE_FIRST - 1]));
    thread->spare_count += LIVE_FIRST - 1;
    return (uint32_t)first;
}

/* For a thread whose list is empty: a slot from the pool, or a new one. The rest of its chain goes to the thread's
 * list. */
static __attribute__((noinline)) uint32_t take_elsewhere(
    struct recording *recording, struct thread_record *thread) {
    uint32_t chain = pool_take(recording);
    if (!chain) return make_slots(recording, thread);
    struct links *last = links_at(recording, chain);
    uint32_t rest = last->next;
    int64_t length = last->length;
    uint64_t empty = HEAD_COUNT(counter_load(&thread->spare));
    /* The exchange fails if the list is no longer empty, because a signal handler has given slots back meanwhile.
     * Then the chain is put in front of those. */
    if (rest && !counter_exchange(&thread->spare, &empty, HEAD(empty, rest))) {
        while (last->next) last = links_at(recording, last->next);
        list_put(thread, rest, last);
    }
    thread->spare_count += length - 1;
    return chain - 1;
}

uint32_t live_table_take(
    struct recording *recording, struct thread_record *thread, struct live_entry **ret_entry) {
    uint64_t head = counter_load(&thread->spare), rest;
    uint32_t slot;
    do {
        slot = HEAD_SLOT(head) - 1;
        if (slot == LIVE_NONE) {
            slot = take_elsewhere(recording, thread);
            if (slot != LIVE_NONE) *ret_entry = live_table_at(recording, slot);
            return slot;
        }
        *ret_entry = live_table_at(recording, slot);
        rest = HEAD(head + HEAD_REMOVAL, links_of(*ret_entry)->next);
    } while (!counter_exchange(&thread->spare, &head, rest));
    thread->spare_count--;
    /* The next slot may have been free for long, and be out of the cache: it is fetched while this one is used. */
    if (HEAD_SLOT(rest)) __builtin_prefetch(links_at(recording, HEAD_SLOT(rest)), 1);
    return slot;
}

__attribute__((noinline)) void live_table_give_all(
    struct recording *recording, struct thread_record *thread) {
    uint64_t head = counter_load(&thread->spare);
    do
        if (!HEAD_SLOT(head)) return;
    while (!counter_exchange(&thread->spare, &head, HEAD(head + HEAD_REMOVAL, 0)));
    pool_give(recording, HEAD_SLOT(head), thread->spare_count);
    thread->spare_count = 0;
}

void live_table_give_entry(
    struct recording *recording, struct thread_record *thread, uint32_t slot, struct live_entry *entry) {
    struct links *links = links_of(entry);
    if (!thread) {
        link_slot(links, 0);
        pool_give(recording, slot + 1, 1);
        return;
    }
    list_put(thread, slot + 1, links);
    if (++thread->spare_count > SPARE_MOST) live_table_give_all(recording, thread);
}

/* ---- fork ---- */

bool live_table_inherit(struct recording *recording, const struct live_entry *copy, uint64_t count) {
    struct table *table = &recording->header->live;
    for (uint64_t made = 0; made < count; made += LIVE_FIRST)
        if (table_append_many(recording, table, LIVE_FIRST, SLOTS_MOST) == UINT64_MAX) return false;
    uint32_t chain = 0, length = 0;
    for (uint32_t slot = 0; slot < count; slot++) {
        struct live_entry *entry = live_table_at(recording, slot);
        memcpy(entry, &copy[slot], sizeof *entry);
        if (live_table_address(entry)) continue;
        link_slot(links_of(entry), chain);
        chain = slot + 1;
        if (++length < LIVE_FIRST) continue;
        pool_give(recording, chain, length);
        chain = length = 0;
    }
    if (chain) pool_give(recording, chain, length);
    return true;
}
