#include "record/walkcache/read_lists.h"

#include "platform/safe_read.h"

#include <stdatomic.h>
#include <string.h>

#define CALLERS_MOST 16 /* that tell lists apart */
#define ALIGNED      8u

/* What a walk begins with. */
struct beginning {
    uint64_t hash;
    uint32_t callers; /* that are in it */
    struct read_list_set *set;
};

static void begin(struct beginning *beginning, struct read_lists *lists, uint64_t hash) {
    beginning->hash = hash;
    beginning->set = growing_sets_at(&lists->sets, hash);
}

static uint64_t page_of(const struct unwind_registers *registers, uint64_t place) {
    return (registers->sp + place * 8) / PAGE_SIZE_MIN;
}

/* Takes one more caller into account, where that can be read. The place may be one of other lists that met
 * in the same set. */
__attribute__((no_sanitize("address"))) static bool go_on(
    struct beginning *beginning, struct read_lists *lists, const struct unwind_registers *registers) {
    uint64_t next = beginning->set->next;
    if (next == 0 || beginning->callers == CALLERS_MOST ||
        page_of(registers, next - 1) != page_of(registers, 0))
        return false;
    uint64_t word = ((const uint64_t *)registers->sp)[next - 1];
    begin(beginning, lists, (beginning->hash + word) * UINT64_C(0xc2b2ae3d27d4eb4f));
    beginning->callers++;
    return true;
}

static struct beginning beginning_of(struct read_lists *lists, const struct unwind_registers *registers) {
    struct beginning beginning = {.callers = 0};
    begin(&beginning, lists, (registers->pc ^ registers->sp << 20) * UINT64_C(0x9e3779b97f4a7c15));
    while (go_on(&beginning, lists, registers)) {
    }
    return beginning;
}

struct read_list_set *read_lists_set_of(struct read_lists *lists, const struct unwind_registers *registers) {
    return beginning_of(lists, registers).set;
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

bool read_lists_align(
    const struct unwind_registers *registers, struct unwind_trace *trace, uint32_t *ret_new_pages) {
    uint64_t page = page_of(registers, 0);
    *ret_new_pages = 0;
    for (uint32_t i = 0; i <= trace->count; i++) {
        bool is_end = i == trace->count, is_turn = !is_end && page_of(registers, trace->place[i]) > page;
        if (!is_end && !is_turn) continue;
        uint32_t times = -i % READ_GROUP;
        if (trace->count + times > TRACE_WORDS) return false;
        repeat(trace, i, times);
        i += times;
        if (is_end) break;
        page = page_of(registers, trace->place[i]);
        *ret_new_pages |= UINT32_C(1) << i / READ_GROUP;
    }
    return true;
}

static const struct read_list *find(const struct read_lists *lists, const struct read_list_set *set,
    const struct unwind_registers *registers, const struct unwind_trace *trace, bool *ret_crowded) {
    *ret_crowded = true;
    for (uint32_t way = 0; way < READ_LISTS_WAYS; way++) {
        const struct read_list *list = read_lists_get(lists, set, way, registers);
        if (list && list->uses_fp == trace->uses_fp && list->count == trace->count &&
            memcmp(list->place, trace->place, trace->count * sizeof *trace->place) == 0)
            return list;
        *ret_crowded &= list != NULL;
    }
    return NULL;
}

static uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* A handler may jump out anywhere: no set leads to what is not whole. */
static const struct read_list *make(struct read_lists *lists, struct read_list_set *set,
    const struct unwind_registers *registers, const struct unwind_trace *trace, uint32_t new_pages) {
    size_t places = trace->count * sizeof *trace->place, size = offsetof(struct read_list, place) + places;
    if (!lists->made) lists->made = READ_LISTS_RING;
    /* A list that begins before the ring's end may go beyond it; the next one begins anew. */
    uint64_t at = lists->made, in_ring = at % READ_LISTS_RING;
    struct read_list *list = (struct read_list *)&lists->ring[in_ring];
    size = (size + ALIGNED - 1) & ~(size_t)(ALIGNED - 1);
    lists->made = in_ring + size < READ_LISTS_RING ? at + size : at - in_ring + READ_LISTS_RING;
    atomic_signal_fence(memory_order_seq_cst);
    list->pc = registers->pc;
    list->sp = registers->sp;
    list->uses_fp = trace->uses_fp;
    list->count = trace->count;
    list->new_pages = new_pages;
    memcpy(list->place, trace->place, places);
    uint64_t salt = mixed(mixed(trace->uses_fp, registers->pc), registers->sp);
    for (uint32_t i = 0; i < trace->count; i++) salt = mixed(salt, trace->place[i]);
    list->salt = salt;
    atomic_signal_fence(memory_order_seq_cst);
    set->recent = (set->recent + 1) % READ_LISTS_WAYS;
    set->at[set->recent] = at;
    return list;
}

/* Half of what the sets hold has been made. Whoever looked into a set now looks into one of several which
 * have the same in them, until others take its place. */
static __attribute__((noinline, cold)) void make_more_sets(struct read_lists *lists) {
    struct growing_sets larger;
    uint64_t count = growing_sets_count(&lists->sets);
    lists->count = 0;
    if (!growing_sets_make_larger(&lists->sets, count * 4, &larger)) return;
    for (uint64_t i = 0; i < growing_sets_count(&larger); i += count)
        memcpy(larger.first + i * SET_SIZE, lists->sets.first, count * SET_SIZE);
    growing_sets_replace(&lists->sets, &larger);
}

const struct read_list *read_lists_add(struct read_lists *lists, const struct unwind_registers *registers,
    const struct unwind_trace *trace, uint32_t new_pages) {
    struct beginning beginning = beginning_of(lists, registers);
    bool crowded;
    const struct read_list *known = find(lists, beginning.set, registers, trace, &crowded);
    if (known) return known;
    if (crowded && !beginning.set->next && beginning.callers < trace->count) {
        beginning.set->next = trace->place[beginning.callers] + 1;
        go_on(&beginning, lists, registers);
    }
    const struct read_list *made = make(lists, beginning.set, registers, trace, new_pages);
    uint64_t sets = growing_sets_count(&lists->sets);
    if (++lists->count >= sets * READ_LISTS_WAYS / 2 && sets < READ_LISTS_SETS_MOST) make_more_sets(lists);
    return made;
}

void read_lists_start(struct read_lists *lists) {
    growing_sets_start(&lists->sets, lists->first_set);
}

void read_lists_free(const struct read_lists *lists) {
    growing_sets_free(&lists->sets);
}
