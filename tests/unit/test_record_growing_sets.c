/* Tables of sets grow: what was in a set is in one of those that take its place, and all threads' tables
 * together keep to their room. */
#include "check.h"
#include "core/sampler.h"
#include "record/walkcache/growing_sets.h"

#define TABLES 64

static _Alignas(SET_SIZE) unsigned char first[TABLES][SETS_AT_START * SET_SIZE];

static uint64_t place(const struct growing_sets *sets, uint64_t hash) {
    return (uint64_t)((unsigned char *)growing_sets_at(sets, hash) - sets->first) / SET_SIZE;
}

static void test_places(void) {
    struct growing_sets sets, larger;
    growing_sets_start(&sets, first[0]);
    CHECK_EQUAL(growing_sets_count(&sets), SETS_AT_START);
    CHECK(!growing_sets_make_larger(&sets, SETS_AT_START, &larger));
    CHECK(growing_sets_make_larger(&sets, SETS_AT_START * 8, &larger));
    CHECK_EQUAL(growing_sets_count(&larger), SETS_AT_START * 8);
    uint64_t random[4], reached = 0;
    sampler_random_seed(random, 1);
    for (int i = 0; i < 100000; i++) {
        uint64_t hash = sampler_random_next(random), to = place(&larger, hash);
        CHECK(to < SETS_AT_START * 8 && to % SETS_AT_START == place(&sets, hash));
        reached += *(uint64_t *)growing_sets_at(&larger, hash) == 0;
        *(uint64_t *)growing_sets_at(&larger, hash) = hash;
    }
    CHECK_EQUAL(reached, SETS_AT_START * 8);
    growing_sets_replace(&sets, &larger);
    CHECK(sets.first == larger.first && sets.mask == larger.mask);
    growing_sets_free(&sets);
}

static size_t bytes(const struct growing_sets *sets) {
    uint64_t count = growing_sets_count(sets);
    return count == SETS_AT_START ? 0 : count * SET_SIZE;
}

/* The first table to grow leaves room for the others. Room that is given back can be taken again. */
static void test_room(void) {
    size_t total[2] = {0};
    for (int round = 0; round < 2; round++) {
        struct growing_sets sets[TABLES], larger;
        for (int i = 0; i < TABLES; i++) {
            growing_sets_start(&sets[i], first[i]);
            while (growing_sets_make_larger(&sets[i], growing_sets_count(&sets[i]) * 4, &larger))
                growing_sets_replace(&sets[i], &larger);
            total[round] += bytes(&sets[i]);
        }
        CHECK(bytes(&sets[0]) >= SETS_BYTES_MOST / 8);
        CHECK(bytes(&sets[1]) > 0 && bytes(&sets[2]) > 0);
        CHECK(total[round] > SETS_BYTES_MOST / 2 && total[round] <= SETS_BYTES_MOST);
        for (int i = 0; i < TABLES; i++) growing_sets_free(&sets[i]);
    }
    CHECK_EQUAL(total[0], total[1]);
}

int main(void) {
    test_places();
    test_room();
    return check_result();
}
