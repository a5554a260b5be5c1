#include "record/walkcache/routes.h"

#include "platform/safe_read.h"

#include <stdatomic.h>
#include <string.h>

#define CALLERS_MOST 16 /* that tell routes apart */
#define ALIGNED      8u

/* What a walk begins with. */
struct beginning {
    uint64_t hash;
    uint32_t callers; /* that are in it */
    struct route_set *set;
};

static void begin(struct beginning *beginning, struct routes *routes, uint64_t hash) {
    beginning->hash = hash;
    beginning->set = growing_sets_at(&routes->sets, hash);
}

static uint64_t page_of(const struct unwind_registers *registers, uint64_t place) {
    return (registers->sp + place * 8) / PAGE_SIZE_MIN;
}

/* Takes one more caller into account, where that can be read. The place may be one of other routes that met
 * in the same set. */
__attribute__((no_sanitize("address"))) static bool go_on(
    struct beginning *beginning, struct routes *routes, const struct unwind_registers *registers) {
    uint64_t next = beginning->set->next;
    if (next == 0 || beginning->callers == CALLERS_MOST ||
        page_of(registers, next - 1) != page_of(registers, 0))
        return false;
    uint64_t word = ((const uint64_t *)registers->sp)[next - 1];
    begin(beginning, routes, (beginning->hash + word) * UINT64_C(0xc2b2ae3d27d4eb4f));
    beginning->callers++;
    return true;
}

static struct beginning beginning_of(struct routes *routes, const struct unwind_registers *registers) {
    struct beginning beginning = {.callers = 0};
    begin(&beginning, routes, (registers->pc ^ registers->sp << 20) * UINT64_C(0x9e3779b97f4a7c15));
    while (go_on(&beginning, routes, registers)) {
    }
    return beginning;
}

struct route_set *routes_from(struct routes *routes, const struct unwind_registers *registers) {
    return beginning_of(routes, registers).set;
}

/* Moves the words from `from` on further back, with the one before them, or the first, in between. */
static void repeat(struct unwind_trace *trace, uint32_t from, uint32_t times) {
    uint32_t again = from ? from - 1 : 0, moved = trace->count - from;
    uint32_t place = trace->place[again];
    uint64_t word = trace->word[again];
    memmove(&trace->place[from + times], &trace->place[from], moved * sizeof *trace->place);
    memmove(&trace->word[from + times], &trace->word[from], moved * sizeof *trace->word);
    for (uint32_t i = from; i < from + times; i++) {
        trace->place[i] = place;
        trace->word[i] = word;
    }
    trace->count += times;
}

bool routes_arrange(
    const struct unwind_registers *registers, struct unwind_trace *trace, uint32_t *ret_turns) {
    uint64_t page = page_of(registers, 0);
    *ret_turns = 0;
    for (uint32_t i = 0; i <= trace->count; i++) {
        bool is_end = i == trace->count, is_turn = !is_end && page_of(registers, trace->place[i]) > page;
        if (!is_end && !is_turn) continue;
        uint32_t times = -i % ROUTE_GROUP;
        if (trace->count + times > TRACE_WORDS) return false;
        repeat(trace, i, times);
        i += times;
        if (is_end) break;
        page = page_of(registers, trace->place[i]);
        *ret_turns |= UINT32_C(1) << i / ROUTE_GROUP;
    }
    return true;
}

static const struct route *find(const struct routes *routes, const struct route_set *set,
    const struct unwind_registers *registers, const struct unwind_trace *trace, bool *ret_crowded) {
    *ret_crowded = true;
    for (uint32_t way = 0; way < ROUTES_WAYS; way++) {
        const struct route *route = route_of(routes, set, way, registers);
        if (route && route->uses_fp == trace->uses_fp && route->count == trace->count &&
            memcmp(route->place, trace->place, trace->count * sizeof *trace->place) == 0)
            return route;
        *ret_crowded &= route != NULL;
    }
    return NULL;
}

static uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* A handler may jump out anywhere: no set leads to what is not whole. */
static const struct route *make(struct routes *routes, struct route_set *set,
    const struct unwind_registers *registers, const struct unwind_trace *trace, uint32_t turns) {
    size_t places = trace->count * sizeof *trace->place, size = offsetof(struct route, place) + places;
    if (!routes->made) routes->made = ROUTES_RING;
    /* A route that begins before the ring's end may go beyond it; the next one begins anew. */
    uint64_t at = routes->made, in_ring = at % ROUTES_RING;
    struct route *route = (struct route *)&routes->ring[in_ring];
    size = (size + ALIGNED - 1) & ~(size_t)(ALIGNED - 1);
    routes->made = in_ring + size < ROUTES_RING ? at + size : at - in_ring + ROUTES_RING;
    atomic_signal_fence(memory_order_seq_cst);
    route->pc = registers->pc;
    route->sp = registers->sp;
    route->uses_fp = trace->uses_fp;
    route->count = trace->count;
    route->turns = turns;
    memcpy(route->place, trace->place, places);
    uint64_t salt = mixed(mixed(trace->uses_fp, registers->pc), registers->sp);
    for (uint32_t i = 0; i < trace->count; i++) salt = mixed(salt, trace->place[i]);
    route->salt = salt;
    atomic_signal_fence(memory_order_seq_cst);
    set->recent = (set->recent + 1) % ROUTES_WAYS;
    set->at[set->recent] = at;
    return route;
}

/* Half of what the sets hold has been made. Whoever looked into a set now looks into one of several which
 * have the same in them, until others take its place. */
static __attribute__((noinline, cold)) void make_more_sets(struct routes *routes) {
    struct sets larger;
    uint64_t count = growing_sets_count(&routes->sets);
    routes->count = 0;
    if (!growing_sets_larger(&routes->sets, count * 4, &larger)) return;
    for (uint64_t i = 0; i < growing_sets_count(&larger); i += count)
        memcpy(larger.first + i * SETS_LINE, routes->sets.first, count * SETS_LINE);
    growing_sets_replace(&routes->sets, &larger);
}

const struct route *routes_keep(struct routes *routes, const struct unwind_registers *registers,
    const struct unwind_trace *trace, uint32_t turns) {
    struct beginning beginning = beginning_of(routes, registers);
    bool crowded;
    const struct route *known = find(routes, beginning.set, registers, trace, &crowded);
    if (known) return known;
    if (crowded && !beginning.set->next && beginning.callers < trace->count) {
        beginning.set->next = trace->place[beginning.callers] + 1;
        go_on(&beginning, routes, registers);
    }
    const struct route *made = make(routes, beginning.set, registers, trace, turns);
    uint64_t sets = growing_sets_count(&routes->sets);
    if (++routes->count >= sets * ROUTES_WAYS / 2 && sets < ROUTES_SETS_MOST) make_more_sets(routes);
    return made;
}

void routes_start(struct routes *routes) {
    growing_sets_start(&routes->sets, routes->first_set);
}

void routes_end(const struct routes *routes) {
    growing_sets_give(&routes->sets);
}
