#include "hook/routes.h"

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
    beginning->set = &routes->set[hash >> (64 - ROUTES_SETS_LOG)];
}

/* Takes one more caller into account. The place may be one of other routes that met in the same set: it must
 * be on the stack in any case. */
__attribute__((no_sanitize("address"))) static bool go_on(struct beginning *beginning, struct routes *routes,
    const struct unwind_registers *registers, uint64_t top) {
    uint64_t next = beginning->set->next;
    if (next == 0 || beginning->callers == CALLERS_MOST || top - registers->sp <= next * 8) return false;
    uint64_t word = ((const uint64_t *)registers->sp)[next - 1];
    begin(beginning, routes, (beginning->hash + word) * UINT64_C(0xc2b2ae3d27d4eb4f));
    beginning->callers++;
    return true;
}

static struct beginning beginning_of(
    struct routes *routes, const struct unwind_registers *registers, uint64_t top) {
    struct beginning beginning = {.callers = 0};
    begin(&beginning, routes, (registers->pc ^ registers->sp << 20) * UINT64_C(0x9e3779b97f4a7c15));
    while (go_on(&beginning, routes, registers, top)) {
    }
    return beginning;
}

struct route_set *routes_from(struct routes *routes, const struct unwind_registers *registers, uint64_t top) {
    return beginning_of(routes, registers, top).set;
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

static const struct route *make(struct routes *routes, struct route_set *set,
    const struct unwind_registers *registers, const struct unwind_trace *trace) {
    size_t places = trace->count * sizeof *trace->place, size = offsetof(struct route, place) + places;
    if (!routes->made) routes->made = ROUTES_RING;
    /* A route that begins before the ring's end may go beyond it; the next one begins anew. */
    uint64_t at = routes->made, in_ring = at % ROUTES_RING;
    struct route *route = (struct route *)&routes->ring[in_ring];
    size = (size + ALIGNED - 1) & ~(size_t)(ALIGNED - 1);
    routes->made = in_ring + size < ROUTES_RING ? at + size : at - in_ring + ROUTES_RING;
    route->pc = registers->pc;
    route->sp = registers->sp;
    route->uses_fp = trace->uses_fp;
    route->count = trace->count;
    memcpy(route->place, trace->place, places);
    uint64_t salt = mixed(mixed(trace->uses_fp, registers->pc), registers->sp);
    for (uint32_t i = 0; i < trace->count; i++) salt = mixed(salt, trace->place[i]);
    route->salt = salt;
    set->recent = (set->recent + 1) % ROUTES_WAYS;
    set->at[set->recent] = at;
    return route;
}

const struct route *routes_keep(struct routes *routes, const struct unwind_registers *registers,
    const struct unwind_trace *trace, uint64_t top) {
    struct beginning beginning = beginning_of(routes, registers, top);
    bool crowded;
    const struct route *known = find(routes, beginning.set, registers, trace, &crowded);
    if (known) return known;
    if (crowded && !beginning.set->next && beginning.callers < trace->count) {
        beginning.set->next = trace->place[beginning.callers] + 1;
        go_on(&beginning, routes, registers, top);
    }
    return make(routes, beginning.set, registers, trace);
}
