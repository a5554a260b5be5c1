/* The tables of code and heaps: what is full takes nothing more, and a child has all numbers of its parent. */
#include "check.h"
#include "core/code_table.h"
#include "core/heap_table.h"
#include "core/name_table.h"
#include "recording_fixture.h"

#define MANY 33000u

static const struct code some_code = {.name = "name", .first_line = 12};

static struct recording *start(void) {
    struct recording *recording = fixture_recording(64 << 20);
    CHECK(name_table_start(recording) && heap_table_start(recording) && code_table_start(recording));
    return recording;
}

static void a_full_table_takes_no_more_room(void) {
    struct recording *recording = start();
    uint32_t found = 0;
    for (uint64_t key = 1; key <= MANY; key++)
        found += code_table_note(recording, 2 * key + 1, &some_code) != CODE_NONE;
    CHECK(found > 30000 && found < MANY);
    uint64_t used = recording->header->arena_used, drops = recording->header->drops[DROP_NAME];
    CHECK(code_table_note(recording, 2 * MANY + 3, &some_code) == CODE_NONE);
    CHECK_EQUAL(recording->header->arena_used, used);
    CHECK_EQUAL(recording->header->drops[DROP_NAME], drops + 1);
    fixture_free(recording);
}

/* A thread that has taken a number and not yet filled it in is not in the child. */
static void a_child_has_what_was_noted_behind_a_gap(void) {
    struct recording *parent = start();
    CHECK_EQUAL(table_append(parent, &parent->header->code_objects, 100), 1);
    CHECK_EQUAL(table_append(parent, &parent->header->heaps, 100), 1);
    CHECK_EQUAL(code_table_note(parent, 3, &some_code), 2);
    CHECK_EQUAL(heap_table_note(parent, 0, 4096, HEAP_REPORTED), 2);
    struct recording *child = start();
    CHECK(heap_table_inherit(child, parent) && code_table_inherit(child, parent));
    CHECK_EQUAL(child->header->code_objects.count, 3);
    CHECK_EQUAL(child->header->heaps.count, 3);
    CHECK_EQUAL(heap_table_rate(child, 2), 4096);
    fixture_free(parent);
    fixture_free(child);
}

int main(void) {
    a_full_table_takes_no_more_room();
    a_child_has_what_was_noted_behind_a_gap();
    return check_result();
}
