#include "record/walkcache/read_lists.h"

#include "platform/safe_read.h"

#include <stdatomic.h>
#include <string.h>

#define SPLITS_MOST 16 /* words that may be part of the hash, beside pc and sp */
#define ALIGNMENT   8u /* of lists in the ring */

/* The set of a walk, while it is looked for. */
struct search {
    uint64_t hash; /* of pc, sp and the first `words` words that the walk reads */
    uint32_t words;
    struct read_list_set *set; /* the one that `hash` selects */
};

static void go_to(struct search *search, struct read_lists *lists, uint64_t hash) {
    search->hash = hash;
    search->set = growing_sets_at(&lists->sets, hash);
}

static uint64_t page_of(const struct unwind_registers *registers, uint64_t place) {
    return (registers->sp + place * 8) / PAGE_SIZE_MIN;
}

/* Goes on to the next set if this one is split. False: it is the last. A set may have been split for walks that
 * start elsewhere and have the same hash; so the word is read only if it lies in the page of the stack pointer,
 * which is mapped. */
__attribute__((no_sanitize("address"))) static bool follow_split(
    struct search *search, struct read_lists *lists, const struct unwind_registers *registers) {
    uint64_t split = search->set->split;
    if (split == 0 || search->words == SPLITS_MOST || page_of(registers, split - 1) != page_of(registers, 0))
        return false;
    uint64_t word = ((const uint64_t *)registers->sp)[split - 1];
    go_to(search, lists, (search->hash + word) * UINT64_C(0xc2b2ae3d27d4eb4f));
    search->words++;
    return true;
}

static struct search search_from(struct read_lists *lists, const struct unwind_registers *registers) {
    struct search search = {.words = 0};
    go_to(&search, lists, (registers->pc ^ registers->sp << 20) * UINT64_C(0x9e3779b97f4a7c15));
    while (follow_split(&search, lists, registers)) {
    }
    return search;
}

struct read_list_set *read_lists_set_of(struct read_lists *lists, const struct unwind_registers *registers) {
    return search_from(lists, registers).set;
}

/* ---- the words of a walk, in groups ---- */

/* Inserts `times` copies of the word before number `from` (of the first word, if `from` is 0) in front of it. */
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
        bool is_end = i == trace->count, is_new_page = !is_end && page_of(registers, trace->place[i]) > page;
        if (!is_end && !is_new_page) continue;
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

/* ---- lists ---- */

/* The list in the set that has the words of this walk, or NULL. `*ret_full`: every way has a list of a walk from
 * these registers. */
static const struct read_list *find(const struct read_lists *lists, const struct read_list_set *set,
    const struct unwind_registers *registers, const struct unwind_trace *trace, bool *ret_full) {
    *ret_full = true;
    for (uint32_t way = 0; way < READ_LISTS_WAYS; way++) {
        const struct read_list *list = read_lists_get(lists, set, way, registers);
        if (list && list->uses_fp == trace->uses_fp && list->count == trace->count &&
            memcmp(list->place, trace->place, trace->count * sizeof *trace->place) == 0)
            return list;
        *ret_full &= list != NULL;
    }
    return NULL;
}

static uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* Whether lists may lie in the ring up to `end`. If all threads together have no room for more, the ring stays as short
 * as it is, and the next list begins at its start. The first
 * step belongs to what each thread starts with. */
static bool take_ring(struct read_lists *lists, uint64_t end) {
    while (lists->ring_taken < end) {
        if (lists->ring_taken >= READ_LISTS_RING_STEP && !growing_sets_take(READ_LISTS_RING_STEP))
            return false;
        lists->ring_taken += READ_LISTS_RING_STEP;
    }
    return true;
}

/* Makes a list in the ring and puts it into the set, into the way after the one that was of use last.
 *
 * The order of the stores matters if a signal handler interrupts this and leaves by longjmp, so that the rest is
 * never done. `made` goes first: sets that name a list which is overwritten find it gone. The set comes last, when
 * the list is whole. */
static const struct read_list *make(struct read_lists *lists, struct read_list_set *set,
    const struct unwind_registers *registers, const struct unwind_trace *trace, uint32_t new_pages) {
    size_t places = trace->count * sizeof *trace->place, size = offsetof(struct read_list, place) + places;
    if (!lists->made) lists->made = READ_LISTS_RING;
    /* The first list behind one that reaches the end of the ring begins at the start of the ring. */
    size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    uint64_t at = lists->made, in_ring = at % READ_LISTS_RING;
    if (!take_ring(lists, in_ring + size)) {
        at += READ_LISTS_RING - in_ring;
        in_ring = 0;
    }
    struct read_list *list = (struct read_list *)&lists->ring[in_ring];
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

/* Called when lists for half of all ways have been made since the sets were last made more. Each new set gets what
 * was in the set that its walks looked into before. So several sets have the same lists at first, and every walk
 * still finds its own. */
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
    struct search search = search_from(lists, registers);
    bool is_full;
    const struct read_list *known = find(lists, search.set, registers, trace, &is_full);
    if (known) return known;
    if (is_full && !search.set->split && search.words < trace->count) {
        search.set->split = trace->place[search.words] + 1;
        follow_split(&search, lists, registers);
    }
    const struct read_list *made = make(lists, search.set, registers, trace, new_pages);
    uint64_t sets = growing_sets_count(&lists->sets);
    if (++lists->count >= sets * READ_LISTS_WAYS / 2 && sets < READ_LISTS_SETS_MOST) make_more_sets(lists);
    return made;
}

void read_lists_start(struct read_lists *lists) {
    growing_sets_start(&lists->sets, lists->first_set);
}

void read_lists_free(const struct read_lists *lists) {
    growing_sets_free(&lists->sets);
    if (lists->ring_taken > READ_LISTS_RING_STEP) growing_sets_give(lists->ring_taken - READ_LISTS_RING_STEP);
}
