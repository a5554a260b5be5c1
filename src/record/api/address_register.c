/* The register of the C API: addresses and what a program knows of them.
 *
 * A list of nodes, sorted by hash, and a table of ways into it. A bucket is a node of the list too, which
 * stands where the addresses of the bucket begin, and is made when somebody first looks for one of them:
 *
 *     buckets   [0]            [2]             [1]   [3] not made yet: the way leads over [1]
 *                │              │               │
 *     list       0 ─► a ─► b ─► 2 ─► c ─► d ──► 1 ─► e ─► f ─► g
 *
 * The order is that of the hashes with their bits reversed, so the table can double without anything being
 * moved: a new bucket only splits the stretch of an old one.
 *
 * A node never changes while it is in the list: a new size or context is a new node. Its link carries a mark,
 * which says that the node is out, and a count of its changes, without which a node that was taken out and
 * used again would be taken for the former one. Taking out is setting the mark. Putting a new node in the
 * place of another is one exchange as well: the old one's link gets its mark and the way to the new one. So
 * every operation happens at one moment, and what somebody else is held up in can be finished by anybody.
 *
 * Nodes that are out are unlinked by whoever comes by, and used again. Memory comes from mmap, in pieces of
 * doubling size, and is given back at the end. */
#define MSCOPE_LINKED
#include "malloscope.h"

#include "platform/caller_state.h"
#include "record/intercept/export.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

#define PIECES       26
#define NODES_FIRST  64u
#define BUCKETS_MOST (UINT64_C(1) << PIECES)
#define PER_BUCKET   2 /* addresses; when there are more, the table doubles */

/* A link: the number of a node in the lower half (0 is none), the mark, and the count of changes. */
#define LINK_NODE(link)             ((uint32_t)(link))
#define LINK_OUT                    (UINT64_C(1) << 32)
#define LINK_CHANGE                 (UINT64_C(1) << 33)
#define LINK_AFTER(link, node, out) (((link) & ~(LINK_CHANGE - 1)) + LINK_CHANGE + (out) + (node))

/* The fields are atomic because who comes late reads nodes that are another's by now; it then finds the link
 * changed and forgets what it read. */
struct node {
    _Atomic uint64_t link;
    _Atomic uint64_t key; /* the hash reversed; 1 in the lowest bit, or 0 for a bucket */
    _Atomic uint64_t address, size, context;
};

struct mscope_register {
    _Atomic(struct node *) nodes[PIECES];        /* piece k holds NODES_FIRST << k */
    _Atomic(_Atomic uint32_t *) buckets[PIECES]; /* 0: bucket 0 and 1, k: from 2^k on; numbers of nodes */
    _Atomic uint64_t nodes_made;
    _Atomic uint64_t unused; /* nodes that are free: a link to the first */
    _Atomic uint64_t bucket_count;
    _Atomic uint64_t count, bytes;
    uint64_t capacity;
};

/* ---- memory ---- */

static void *map(struct mscope_register *reg, uint64_t size) {
    KEEP_CALLER_STATE;
    void *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    if (reg) atomic_fetch_add_explicit(&reg->bytes, size, memory_order_relaxed);
    return memory;
}

static void unmap(struct mscope_register *reg, void *memory, uint64_t size) {
    KEEP_CALLER_STATE;
    munmap(memory, size);
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
    struct node *nodes = atomic_load_explicit(&reg->nodes[piece], memory_order_acquire);
    return &nodes[number + (uint64_t)NODES_FIRST - ((uint64_t)NODES_FIRST << piece)];
}

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

/* A node that nobody else has, or 0. */
static uint32_t take_node(struct mscope_register *reg) {
    uint64_t first = atomic_load_explicit(&reg->unused, memory_order_acquire);
    while (LINK_NODE(first)) {
        /* If another takes it meanwhile, the count of changes tells. */
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

/* Where something is, or would be. */
struct position {
    _Atomic uint64_t *way; /* the link that leads there, which was `to_node` */
    uint64_t to_node;
    struct node *node; /* the first that is not before what was looked for; NULL at the end */
    uint64_t link;     /* of that node */
    uint64_t key, address;
};

static bool is_before(uint64_t key, uint64_t address, uint64_t other_key, uint64_t other_address) {
    return key != other_key ? key < other_key : address < other_address;
}

/* Goes along the list from `start`, which is a bucket before it, and unlinks what is out. */
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

static void fill(struct node *node, uint64_t key, uint64_t address, uint64_t size, uint64_t context) {
    atomic_store_explicit(&node->key, key, memory_order_release);
    atomic_store_explicit(&node->address, address, memory_order_release);
    atomic_store_explicit(&node->size, size, memory_order_release);
    atomic_store_explicit(&node->context, context, memory_order_release);
}

static void point(struct node *node, uint32_t next) {
    uint64_t link = atomic_load_explicit(&node->link, memory_order_relaxed);
    atomic_store_explicit(&node->link, LINK_AFTER(link, next, 0), memory_order_release);
}

/* Puts a node that has been filled at a position where nothing is. */
static bool link_at(struct mscope_register *reg, struct position *at, uint32_t number) {
    point(node_at(reg, number), LINK_NODE(at->to_node));
    return atomic_compare_exchange_strong_explicit(at->way, &at->to_node, LINK_AFTER(at->to_node, number, 0),
        memory_order_acq_rel, memory_order_relaxed);
}

/* Takes the node at a position out. If `by` is not 0, that node takes its place. */
static bool take_out(struct mscope_register *reg, struct position *at, uint32_t by) {
    if (by) point(node_at(reg, by), LINK_NODE(at->link));
    uint64_t link = LINK_AFTER(at->link, by ? by : LINK_NODE(at->link), LINK_OUT);
    if (!atomic_compare_exchange_strong_explicit(
            &at->node->link, &at->link, link, memory_order_acq_rel, memory_order_relaxed))
        return false;
    uint32_t out = LINK_NODE(at->to_node);
    /* If this fails, whoever comes by next does it. */
    if (atomic_compare_exchange_strong_explicit(at->way, &at->to_node,
            LINK_AFTER(at->to_node, LINK_NODE(link), 0), memory_order_acq_rel, memory_order_relaxed))
        give_node(reg, out);
    return true;
}

/* What the node at a position holds; false if it is another's by now. */
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

/* Where the number of the bucket's node stands, 0 as long as it has none; or NULL if there is no memory. */
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

/* The bucket's node. Where there is no memory for one, that of a bucket further ahead. */
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
        if (is_at(&at, key, 0)) { /* another was faster */
            uint32_t theirs = LINK_NODE(at.to_node);
            give_node(reg, made);
            atomic_store_explicit(place, theirs, memory_order_release);
            return node_at(reg, theirs);
        }
    } while (!link_at(reg, &at, made));
    atomic_store_explicit(place, made, memory_order_release);
    return node_at(reg, made);
}

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
    reg->nodes_made = 1; /* number 0 is none */
    /* Bucket 0 is there from the beginning: all ways start from it. */
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
    KEEP_CALLER_STATE;
    munmap(reg, sizeof *reg);
}

/* Room for one more address. */
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

/* Looks for the next one anew each time: `visit` may change the register. */
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
