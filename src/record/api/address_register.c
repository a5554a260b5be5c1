/* The address register of the C API: a lock-free hash table from addresses to what a program knows of them
 * (mscope_register_* in malloscope.h). It is a split-ordered list.
 *
 * All entries are nodes of one linked list, sorted by key. The table of buckets has entry points into the list. A
 * bucket is a node of the list, too: it stands before the first address of the bucket. It is made when an address of
 * the bucket is first looked for.
 *
 *     buckets   [0]            [2]             [1]   [3]: not made yet, so a search starts from [1]
 *                │              │               │
 *     list       0 ─► a ─► b ─► 2 ─► c ─► d ──► 1 ─► e ─► f ─► g
 *
 * A key is the hash of the address with its bits reversed. So the table can double without moving any node: a new
 * bucket only divides the stretch of an old one.
 *
 * A node does not change while it is in the list; a new size or context means a new node. A node's link has three
 * parts: the number of the next node; a mark, which says that the node is removed; a count of changes, which tells a
 * node that was removed and used again from the node it was before (the ABA problem).
 *
 *     insert    one exchange of the link before it: from the next node to the new one
 *     remove    one exchange of the node's own link: its mark is set
 *     replace   one exchange of the node's own link: its mark is set, and it leads to the new node
 *
 * So every operation takes effect at one instruction. A removed node is unlinked by any thread that comes by, and
 * used again: no thread ever waits for another that was interrupted.
 *
 * Memory comes from mmap, in pieces of doubling size, and is given back by mscope_register_free. */
#define MSCOPE_LINKED
#include "malloscope.h"

#include "platform/calls.h"
#include "record/intercept/export.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

#define PIECES       26
#define NODES_FIRST  64u
#define BUCKETS_MOST (UINT64_C(1) << PIECES)
#define PER_BUCKET   2 /* addresses per bucket, on average, beyond which the table doubles */

/* A link: the number of the next node in the lower half (0: none), the mark LINK_OUT, and above it the count of
 * changes, one of which is LINK_CHANGE. LINK_AFTER is the link that follows `link`. */
#define LINK_NODE(link)             ((uint32_t)(link))
#define LINK_OUT                    (UINT64_C(1) << 32)
#define LINK_CHANGE                 (UINT64_C(1) << 33)
#define LINK_AFTER(link, node, out) (((link) & ~(LINK_CHANGE - 1)) + LINK_CHANGE + (out) + (node))

/* All fields are atomic: a thread that was held up may read a node that was removed and used again meanwhile. It
 * then finds the link changed, and discards what it read. */
struct node {
    _Atomic uint64_t link;
    _Atomic uint64_t
        key; /* the reversed hash, with the lowest bit 1; for a bucket its reversed number: bit 0 */
    _Atomic uint64_t address, size, context;
};

struct mscope_register {
    _Atomic(struct node *) nodes[PIECES]; /* piece k holds NODES_FIRST << k */
    /* Numbers of the buckets' nodes. Piece 0 has buckets 0 and 1, piece k the buckets from 2^k to below 2^(k+1). */
    _Atomic(_Atomic uint32_t *) buckets[PIECES];
    _Atomic uint64_t nodes_made;
    _Atomic uint64_t unused; /* a link to the first of the free nodes, which are linked with each other */
    _Atomic uint64_t bucket_count;
    _Atomic uint64_t count; /* of addresses; relaxed throughout, as is `bytes`: nothing is ordered by them */
    _Atomic uint64_t bytes; /* mapped */
    uint64_t capacity;
};

/* ---- memory ---- */

static void *map(struct mscope_register *reg, uint64_t size) {
    void *memory =
        call_mmap(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory && reg) atomic_fetch_add_explicit(&reg->bytes, size, memory_order_relaxed);
    return memory;
}

static void unmap(struct mscope_register *reg, void *memory, uint64_t size) {
    call_munmap(memory, size);
    atomic_fetch_sub_explicit(&reg->bytes, size, memory_order_relaxed);
}

static uint32_t node_piece(uint32_t number) {
    return (uint32_t)(63 - __builtin_clzll((uint64_t)number + NODES_FIRST)) - __builtin_ctz(NODES_FIRST);
}

static uint64_t node_piece_size(uint32_t piece) {
    return ((uint64_t)NODES_FIRST << piece) * sizeof(struct node);
}

static struct node *node_at(struct mscope_register *reg, uint32_t number) {
    uint32_t piece = node_piece(number);
    /* Acquire: pairs with the release in have_nodes. */
    struct node *nodes = atomic_load_explicit(&reg->nodes[piece], memory_order_acquire);
    return &nodes[number + (uint64_t)NODES_FIRST - ((uint64_t)NODES_FIRST << piece)];
}

/* Makes sure that piece `piece` of the nodes is there. */
static bool have_nodes(struct mscope_register *reg, uint32_t piece) {
    struct node *there = atomic_load_explicit(&reg->nodes[piece], memory_order_acquire);
    if (there) return true;
    struct node *made = map(reg, node_piece_size(piece));
    if (!made) return false;
    if (!atomic_compare_exchange_strong_explicit(
            &reg->nodes[piece], &there, made, memory_order_release, memory_order_relaxed))
        unmap(reg, made, node_piece_size(piece));
    return true;
}

/* The number of a node that no other thread has; 0: there is no memory. */
static uint32_t take_node(struct mscope_register *reg) {
    uint64_t first = atomic_load_explicit(&reg->unused, memory_order_acquire);
    while (LINK_NODE(first)) {
        /* If another thread takes the node meanwhile, `second` may be wrong. Then the count of changes in `unused` is
         * another, and the exchange fails. */
        uint32_t second =
            LINK_NODE(atomic_load_explicit(&node_at(reg, LINK_NODE(first))->link, memory_order_acquire));
        if (atomic_compare_exchange_weak_explicit(&reg->unused, &first, LINK_AFTER(first, second, 0),
                memory_order_acq_rel, memory_order_acquire))
            return LINK_NODE(first);
    }
    uint64_t number = atomic_load_explicit(&reg->nodes_made, memory_order_relaxed);
    do {
        uint32_t piece = number < UINT32_MAX - NODES_FIRST ? node_piece((uint32_t)number) : PIECES;
        if (piece >= PIECES || !have_nodes(reg, piece)) return 0;
    } while (!atomic_compare_exchange_weak_explicit(
        &reg->nodes_made, &number, number + 1, memory_order_acq_rel, memory_order_relaxed));
    return (uint32_t)number;
}

static void give_node(struct mscope_register *reg, uint32_t number) {
    struct node *node = node_at(reg, number);
    uint64_t link = atomic_load_explicit(&node->link, memory_order_relaxed);
    uint64_t first = atomic_load_explicit(&reg->unused, memory_order_acquire);
    do atomic_store_explicit(&node->link, LINK_AFTER(link, LINK_NODE(first), LINK_OUT), memory_order_release);
    while (!atomic_compare_exchange_weak_explicit(
        &reg->unused, &first, LINK_AFTER(first, number, 0), memory_order_acq_rel, memory_order_acquire));
}

/* ---- the list ---- */

/* Where in the list a key is, or would be. */
struct position {
    _Atomic uint64_t *way; /* the link of the node before it */
    uint64_t to_node;      /* the value that link had */
    struct node *node;     /* the first node that is not before the key; NULL: the end of the list */
    uint64_t link;         /* the value of that node's link */
    uint64_t key, address; /* of that node */
};

static bool is_before(uint64_t key, uint64_t address, uint64_t other_key, uint64_t other_address) {
    return key != other_key ? key < other_key : address < other_address;
}

/* Goes along the list from `start`, a bucket before the key, and unlinks removed nodes on the way.
 *
 * Acquire throughout: pairs with the releases by which nodes are filled and linked. The fields of a node are used only
 * if the link that led to it is unchanged after they were read: then the node was in the list all the time. */
static struct position search(
    struct mscope_register *reg, struct node *start, uint64_t key, uint64_t address) {
again:;
    struct position at = {.way = &start->link};
    at.to_node = atomic_load_explicit(at.way, memory_order_acquire);
    for (;;) {
        at.node = NULL;
        if (!LINK_NODE(at.to_node)) return at;
        at.node = node_at(reg, LINK_NODE(at.to_node));
        at.link = atomic_load_explicit(&at.node->link, memory_order_acquire);
        at.key = atomic_load_explicit(&at.node->key, memory_order_acquire);
        at.address = atomic_load_explicit(&at.node->address, memory_order_acquire);
        if (atomic_load_explicit(at.way, memory_order_acquire) != at.to_node) goto again;
        if (at.link & LINK_OUT) {
            uint64_t past = LINK_AFTER(at.to_node, LINK_NODE(at.link), 0);
            uint32_t out = LINK_NODE(at.to_node);
            if (!atomic_compare_exchange_strong_explicit(
                    at.way, &at.to_node, past, memory_order_acq_rel, memory_order_relaxed))
                goto again;
            give_node(reg, out);
            at.to_node = past;
        } else {
            if (!is_before(at.key, at.address, key, address)) return at;
            at.way = &at.node->link;
            at.to_node = at.link;
        }
    }
}

static bool is_at(const struct position *at, uint64_t key, uint64_t address) {
    return at->node && at->key == key && at->address == address;
}

/* Fills a node that no other thread has. */
static void fill(struct node *node, uint64_t key, uint64_t address, uint64_t size, uint64_t context) {
    atomic_store_explicit(&node->key, key, memory_order_release);
    atomic_store_explicit(&node->address, address, memory_order_release);
    atomic_store_explicit(&node->size, size, memory_order_release);
    atomic_store_explicit(&node->context, context, memory_order_release);
}

/* Sets the next node of a node that no other thread has. */
static void point(struct node *node, uint32_t next) {
    uint64_t link = atomic_load_explicit(&node->link, memory_order_relaxed);
    atomic_store_explicit(&node->link, LINK_AFTER(link, next, 0), memory_order_release);
}

/* Inserts a node, which has been filled, at the position. False: the list has changed there. */
static bool link_at(struct mscope_register *reg, struct position *at, uint32_t number) {
    point(node_at(reg, number), LINK_NODE(at->to_node));
    return atomic_compare_exchange_strong_explicit(at->way, &at->to_node, LINK_AFTER(at->to_node, number, 0),
        memory_order_acq_rel, memory_order_relaxed);
}

/* Removes the node at the position. If `by` is not 0, that node, which has been filled, takes its place. False: the
 * node was removed or replaced by another thread. */
static bool take_out(struct mscope_register *reg, struct position *at, uint32_t by) {
    if (by) point(node_at(reg, by), LINK_NODE(at->link));
    uint64_t link = LINK_AFTER(at->link, by ? by : LINK_NODE(at->link), LINK_OUT);
    if (!atomic_compare_exchange_strong_explicit(
            &at->node->link, &at->link, link, memory_order_acq_rel, memory_order_relaxed))
        return false;
    uint32_t out = LINK_NODE(at->to_node);
    /* Unlinks it. If this fails, the next search that comes by does it. */
    if (atomic_compare_exchange_strong_explicit(at->way, &at->to_node,
            LINK_AFTER(at->to_node, LINK_NODE(link), 0), memory_order_acq_rel, memory_order_relaxed))
        give_node(reg, out);
    return true;
}

/* What the node at the position holds. False: the node has changed since the search. */
static bool read_at(const struct position *at, struct mscope_registered *ret_entry) {
    ret_entry->address = (const void *)at->address;
    ret_entry->size = atomic_load_explicit(&at->node->size, memory_order_acquire);
    ret_entry->context = atomic_load_explicit(&at->node->context, memory_order_acquire);
    return atomic_load_explicit(&at->node->link, memory_order_acquire) == at->link;
}

/* ---- the buckets ---- */

static uint64_t reverse(uint64_t bits) {
    bits = (bits & UINT64_C(0x5555555555555555)) << 1 | (bits >> 1 & UINT64_C(0x5555555555555555));
    bits = (bits & UINT64_C(0x3333333333333333)) << 2 | (bits >> 2 & UINT64_C(0x3333333333333333));
    bits = (bits & UINT64_C(0x0f0f0f0f0f0f0f0f)) << 4 | (bits >> 4 & UINT64_C(0x0f0f0f0f0f0f0f0f));
    return __builtin_bswap64(bits);
}

static uint64_t key_of(uint64_t address) {
    uint64_t hash = address * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 32;
    return reverse(hash) | 1;
}

static uint32_t bucket_piece(uint64_t bucket) {
    return bucket < 2 ? 0 : (uint32_t)(63 - __builtin_clzll(bucket));
}

static uint64_t bucket_piece_size(uint32_t piece) {
    return (piece ? UINT64_C(1) << piece : 2) * sizeof(uint32_t);
}

/* Where the number of the bucket's node stands, which is 0 until the node is made. NULL: there is no memory. */
static _Atomic uint32_t *bucket_place(struct mscope_register *reg, uint64_t bucket) {
    uint32_t piece = bucket_piece(bucket);
    _Atomic uint32_t *places = atomic_load_explicit(&reg->buckets[piece], memory_order_acquire);
    if (!places) {
        _Atomic uint32_t *made = map(reg, bucket_piece_size(piece));
        if (!made) return NULL;
        if (atomic_compare_exchange_strong_explicit(
                &reg->buckets[piece], &places, made, memory_order_acq_rel, memory_order_acquire))
            places = made;
        else
            unmap(reg, made, bucket_piece_size(piece));
    }
    return &places[piece ? bucket - (UINT64_C(1) << piece) : bucket];
}

/* The node of a bucket. If there is no memory for it, the node of a bucket that comes earlier in the list: searches
 * then take longer, and find the same. */
static struct node *bucket_node(struct mscope_register *reg, uint64_t bucket) {
    _Atomic uint32_t *place = bucket_place(reg, bucket);
    uint32_t number = place ? atomic_load_explicit(place, memory_order_acquire) : 0;
    if (number) return node_at(reg, number);

    struct node *before = bucket_node(reg, bucket & ~(UINT64_C(1) << bucket_piece(bucket)));
    uint32_t made = place ? take_node(reg) : 0;
    if (!made) return before;
    uint64_t key = reverse(bucket);
    fill(node_at(reg, made), key, 0, 0, 0);
    struct position at;
    do {
        at = search(reg, before, key, 0);
        if (is_at(&at, key, 0)) { /* another thread has made it */
            uint32_t theirs = LINK_NODE(at.to_node);
            give_node(reg, made);
            atomic_store_explicit(place, theirs, memory_order_release);
            return node_at(reg, theirs);
        }
    } while (!link_at(reg, &at, made));
    atomic_store_explicit(place, made, memory_order_release);
    return node_at(reg, made);
}

/* The node from which to search for a key. Relaxed: any number of buckets that the table had leads to the key. */
static struct node *way_to(struct mscope_register *reg, uint64_t key) {
    uint64_t buckets = atomic_load_explicit(&reg->bucket_count, memory_order_relaxed);
    return bucket_node(reg, reverse(key) & (buckets - 1));
}

static void grow(struct mscope_register *reg, uint64_t count) {
    uint64_t buckets = atomic_load_explicit(&reg->bucket_count, memory_order_relaxed);
    if (count > buckets * PER_BUCKET && buckets < BUCKETS_MOST)
        atomic_compare_exchange_strong_explicit(
            &reg->bucket_count, &buckets, buckets * 2, memory_order_relaxed, memory_order_relaxed);
}

/* ---- the register ---- */

EXPORT struct mscope_register *mscope_register_new(size_t capacity) {
    struct mscope_register *reg = map(NULL, sizeof *reg);
    if (!reg) return NULL;
    reg->bytes = sizeof *reg;
    reg->capacity = capacity ? capacity : UINT64_MAX;
    reg->bucket_count = 2;
    reg->nodes_made = 1; /* number 0 stands for no node */
    /* Bucket 0 is there from the beginning: it is the first node of the list. */
    _Atomic uint32_t *place = have_nodes(reg, 0) ? bucket_place(reg, 0) : NULL;
    if (!place) {
        mscope_register_free(reg);
        return NULL;
    }
    uint32_t first = take_node(reg);
    point(node_at(reg, first), 0);
    *place = first;
    return reg;
}

EXPORT void mscope_register_free(struct mscope_register *reg) {
    if (!reg) return;
    for (uint32_t piece = 0; piece < PIECES; piece++) {
        if (reg->nodes[piece]) unmap(reg, reg->nodes[piece], node_piece_size(piece));
        if (reg->buckets[piece]) unmap(reg, reg->buckets[piece], bucket_piece_size(piece));
    }
    call_munmap(reg, sizeof *reg);
}

/* Counts one more address. False: the register is full. */
static bool reserve(struct mscope_register *reg) {
    uint64_t count = atomic_load_explicit(&reg->count, memory_order_relaxed);
    do
        if (count >= reg->capacity) return false;
    while (!atomic_compare_exchange_weak_explicit(
        &reg->count, &count, count + 1, memory_order_relaxed, memory_order_relaxed));
    grow(reg, count + 1);
    return true;
}

static void release(struct mscope_register *reg) {
    atomic_fetch_sub_explicit(&reg->count, 1, memory_order_relaxed);
}

EXPORT mscope_result mscope_register_insert(
    struct mscope_register *reg, const void *address, size_t size, uint64_t context) {
    if (!reg) return MSCOPE_BAD_ARGUMENT;
    uint32_t made = take_node(reg);
    if (!made) return MSCOPE_FULL;
    uint64_t value = (uintptr_t)address, key = key_of(value);
    fill(node_at(reg, made), key, value, size, context);
    for (bool reserved = false;;) {
        struct position at = search(reg, way_to(reg, key), key, value);
        if (is_at(&at, key, value)) {
            if (!take_out(reg, &at, made)) continue;
            if (reserved) release(reg);
            return MSCOPE_OK;
        }
        if (!reserved && !(reserved = reserve(reg))) {
            give_node(reg, made);
            return MSCOPE_FULL;
        }
        if (link_at(reg, &at, made)) return MSCOPE_OK;
    }
}

EXPORT mscope_result mscope_register_set_context(
    struct mscope_register *reg, const void *address, uint64_t context) {
    if (!reg) return MSCOPE_BAD_ARGUMENT;
    uint32_t made = take_node(reg);
    if (!made) return MSCOPE_FULL;
    uint64_t value = (uintptr_t)address, key = key_of(value);
    for (;;) {
        struct position at = search(reg, way_to(reg, key), key, value);
        struct mscope_registered former;
        if (!is_at(&at, key, value)) {
            give_node(reg, made);
            return MSCOPE_UNKNOWN;
        }
        if (!read_at(&at, &former)) continue;
        fill(node_at(reg, made), key, value, former.size, context);
        if (take_out(reg, &at, made)) return MSCOPE_OK;
    }
}

EXPORT mscope_result mscope_register_remove(
    struct mscope_register *reg, const void *address, struct mscope_registered *ret_removed) {
    if (!reg) return MSCOPE_BAD_ARGUMENT;
    uint64_t value = (uintptr_t)address, key = key_of(value);
    for (;;) {
        struct position at = search(reg, way_to(reg, key), key, value);
        struct mscope_registered removed;
        if (!is_at(&at, key, value)) return MSCOPE_UNKNOWN;
        if (!read_at(&at, &removed) || !take_out(reg, &at, 0)) continue;
        release(reg);
        if (ret_removed) *ret_removed = removed;
        return MSCOPE_OK;
    }
}

EXPORT mscope_result mscope_register_find(
    struct mscope_register *reg, const void *address, struct mscope_registered *ret_found) {
    if (!reg) return MSCOPE_BAD_ARGUMENT;
    uint64_t value = (uintptr_t)address, key = key_of(value);
    for (;;) {
        struct position at = search(reg, way_to(reg, key), key, value);
        struct mscope_registered found;
        if (!is_at(&at, key, value)) return MSCOPE_UNKNOWN;
        if (!read_at(&at, &found)) continue;
        if (ret_found) *ret_found = found;
        return MSCOPE_OK;
    }
}

/* Searches for the next address anew after each visit, because `visit` may change the register. */
EXPORT mscope_result mscope_register_each(struct mscope_register *reg,
    void (*visit)(void *context, const struct mscope_registered *entry), void *context) {
    if (!reg || !visit) return MSCOPE_BAD_ARGUMENT;
    for (uint64_t key = 0, address = 0;;) {
        struct position at = search(reg, way_to(reg, key), key, address);
        struct mscope_registered entry;
        if (!at.node) return MSCOPE_OK;
        bool is_bucket = !(at.key & 1);
        if (!read_at(&at, &entry)) continue;
        key = at.key + (at.address == UINT64_MAX);
        address = at.address + 1;
        if (!is_bucket) visit(context, &entry);
    }
}

EXPORT size_t mscope_register_overhead(struct mscope_register *reg) {
    return reg ? atomic_load_explicit(&reg->bytes, memory_order_relaxed) : 0;
}

EXPORT size_t mscope_register_count(struct mscope_register *reg) {
    return reg ? atomic_load_explicit(&reg->count, memory_order_relaxed) : 0;
}
