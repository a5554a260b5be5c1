/* Tables of sets grow: what was in a set is in one of those that take its place, and all threads' tables
 * together keep to their room. */
#include "check.h"
#include "core/sampler.h"
#include "record/walkcache/growing_sets.h"

#define TABLES 64

static _Alignas(SETS_LINE) unsigned char first[TABLES][SETS_FIRST * SETS_LINE];

static uint64_t place(const struct sets *sets, uint64_t hash) {
    return (uint64_t)((unsigned char *)growing_sets_at(sets, hash) - sets->first) / SETS_LINE;
}

static void test_places(void) {
    struct sets sets, larger;
    growing_sets_start(&sets, first[0]);
    CHECK_EQUAL(growing_sets_count(&sets), SETS_FIRST);
    CHECK(!growing_sets_larger(&sets, SETS_FIRST, &larger));
    CHECK(growing_sets_larger(&sets, SETS_FIRST * 8, &larger));
    CHECK_EQUAL(growing_sets_count(&larger), SETS_FIRST * 8);
    uint64_t random[4], reached = 0;
    sampler_random_seed(random, 1);
    for (int i = 0; i < 100000; i++) {
        uint64_t hash = sampler_random_next(random), to = place(&larger, hash);
        CHECK(to < SETS_FIRST * 8 && to % SETS_FIRST == place(&sets, hash));
        reached += *(uint64_t *)growing_sets_at(&larger, hash) == 0;
        *(uint64_t *)growing_sets_at(&larger, hash) = hash;
    }
    CHECK_EQUAL(reached, SETS_FIRST * 8);
    growing_sets_replace(&sets, &larger);
    CHECK(sets.first == larger.first && sets.mask == larger.mask);
    growing_sets_give(&sets);
}

static size_t bytes(const struct sets *sets) {
    uint64_t count = growing_sets_count(sets);
    return count == SETS_FIRST ? 0 : count * SETS_LINE;
}

/* Whoever comes first leaves some for others; what is given back can be had again. */
static void test_room(void) {
    size_t total[2] = {0};
    for (int round = 0; round < 2; round++) {
        struct sets sets[TABLES], larger;
        for (int i = 0; i < TABLES; i++) {
            growing_sets_start(&sets[i], first[i]);
            while (growing_sets_larger(&sets[i], growing_sets_count(&sets[i]) * 4, &larger))
                growing_sets_replace(&sets[i], &larger);
            total[round] += bytes(&sets[i]);
        }
        CHECK(bytes(&sets[0]) >= SETS_ROOM / 8);
        CHECK(bytes(&sets[1]) > 0 && bytes(&sets[2]) > 0);
        CHECK(total[round] > SETS_ROOM / 2 && total[round] <= SETS_ROOM);
        for (int i = 0; i < TABLES; i++) growing_sets_give(&sets[i]);
    }
    CHECK_EQUAL(total[0], total[1]);
}

int main(void) {
    test_places();
    test_room();
    return check_result();
}
