/* The stack table: one number for equal stacks, another for different ones, from any number of threads. */
#include "check.h"
#include "core/stack_table.h"
#include "recording_fixture.h"

#include <pthread.h>

static uint32_t intern(struct recording *recording, const uint64_t *frames, uint32_t count, bool *ret_new) {
    struct stack_key key = {.frames = frames, .frame_count = count, .flags = STACK_COMPLETE};
    uint64_t before = recording->header->stacks.count;
    uint32_t stack = stack_table_intern(recording, &key);
    *ret_new = stack >= before;
    return stack;
}

static void check_basics(void) {
    struct recording *recording = fixture_recording(64 << 20);
    CHECK(stack_table_start(recording));
    const uint64_t a[] = {1, 2, 3}, b[] = {1, 2, 4};
    bool is_new;
    uint32_t first = intern(recording, a, 3, &is_new);
    CHECK(first != STACK_DROPPED && is_new);
    CHECK(intern(recording, a, 3, &is_new) == first && !is_new);
    uint32_t second = intern(recording, b, 3, &is_new);
    CHECK(second != first && is_new);
    CHECK(intern(recording, a, 2, &is_new) != first);
    struct stack_key other_type = {.frames = a, .frame_count = 3, .type = 1};
    struct stack_key other_heap = {.frames = a, .frame_count = 3, .heap = 1};
    uint32_t typed = stack_table_intern(recording, &other_type);
    CHECK(typed != first && stack_table_intern(recording, &other_heap) != typed);
    CHECK(
        stack_table_intern(recording, &other_type) == typed && stack_table_get(recording, typed)->type == 1);
    struct stack_record *record = stack_table_get(recording, second);
    CHECK(record->frame_count == 3 && memcmp(arena_at(recording, record->frames), b, sizeof b) == 0);
    CHECK(record->flags == STACK_COMPLETE);

    uint32_t wrong = 0;
    for (uint64_t i = 0; i < 50000; i++) {
        const uint64_t frames[] = {i, 7, i * i};
        intern(recording, frames, 3, &is_new);
        wrong += !is_new;
    }
    for (uint64_t i = 0; i < 50000; i++) {
        const uint64_t frames[] = {i, 7, i * i};
        struct stack_record *found = stack_table_get(recording, intern(recording, frames, 3, &is_new));
        wrong += is_new || memcmp(arena_at(recording, found->frames), frames, sizeof frames) != 0;
    }
    CHECK_EQUAL(wrong, 0);
    fixture_free(recording);
}

static void check_full(void) {
    struct recording *recording = fixture_recording(1 << 20);
    CHECK(stack_table_start(recording));
    bool is_new = true;
    uint64_t i = 0;
    for (; i < 1000000; i++) {
        const uint64_t frames[] = {i, i + 1, i + 2, i + 3};
        if (intern(recording, frames, 4, &is_new) == STACK_DROPPED) break;
    }
    CHECK(i > 500 && i < 1000000 && !is_new);
    CHECK(recording->header->drops[DROP_STACK_TABLE] == 1);
    const uint64_t known[] = {0, 1, 2, 3};
    CHECK(intern(recording, known, 4, &is_new) != STACK_DROPPED && !is_new);
    fixture_free(recording);
}

/* When the recording is half full, stacks that differ in their middle frames become one. */
static void check_folding(void) {
    struct recording *recording = fixture_recording(8 << 20);
    CHECK(stack_table_start(recording));
    bool is_new;
    uint32_t folded = STACK_DROPPED, others = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t frames[100] = {0};
        for (uint64_t k = 0; k < 100; k++) frames[k] = k < 20 || k >= 95 ? 1000 + k : i * 100 + k;
        uint32_t stack = intern(recording, frames, 100, &is_new);
        CHECK(stack != STACK_DROPPED);
        if (!(stack_table_get(recording, stack)->flags & STACK_FOLDED)) continue;
        others += folded != STACK_DROPPED && folded != stack;
        folded = stack;
    }
    CHECK(folded != STACK_DROPPED && others == 0);
    const struct stack_record *record = stack_table_get(recording, folded);
    const uint64_t *frames = arena_at(recording, record->frames);
    CHECK_EQUAL(record->frame_count, 17);
    CHECK_EQUAL(record->flags, STACK_COMPLETE | STACK_CUT | STACK_FOLDED);
    CHECK(frames[0] == 1000 && frames[11] == 1011 && frames[13] == 1096 && frames[16] == 1099);
    CHECK_EQUAL(frames[12] >> FRAME_KIND_SHIFT, FRAME_CUT);
    CHECK(recording->header->arena_used < 5 << 20);
    CHECK_EQUAL(recording->header->drops[DROP_STACK_TABLE], 0);
    fixture_free(recording);
}

/* Whatever stacks there are, live samples find room; and so they do when the file cannot grow. */
static void check_room_for_others(bool grows) {
    struct recording *recording = fixture_recording(16 << 20);
    CHECK(stack_table_start(recording));
    arena_reserve(recording, 4 << 20);
    if (!grows) unlink(recording->path);
    bool is_new;
    for (uint64_t i = 0; i < 200000; i++) {
        const uint64_t frames[] = {i, i + 1, i + 2};
        if (intern(recording, frames, 3, &is_new) == STACK_DROPPED && i > 100000) break;
    }
    CHECK(recording->header->drops[DROP_STACK_TABLE] > 0);
    CHECK(arena_allocate(recording, grows ? 1 << 20 : 64 << 10, 64) != 0);
    fixture_free(recording);
}

static struct recording *shared;
static _Atomic uint64_t wrong;

static void *work(void *argument) {
    bool is_new;
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 20000; i++) {
            const uint64_t frames[] = {i, i << 20, (uintptr_t)argument & 1};
            uint32_t stack = intern(shared, frames, 3, &is_new);
            struct stack_record *record = stack_table_get(shared, stack);
            wrong += stack == STACK_DROPPED ||
                     memcmp(arena_at(shared, record->frames), frames, sizeof frames) != 0;
            record->alloc_objects++;
        }
    }
    return NULL;
}

static void check_threads(void) {
    enum { THREADS = 8 };
    shared = fixture_recording(256 << 20);
    CHECK(stack_table_start(shared));
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK_EQUAL(wrong, 0);
    uint64_t sum = 0, used = 0;
    for (uint32_t i = 0; i < shared->header->stacks.count; i++) {
        uint64_t objects = stack_table_get(shared, i)->alloc_objects;
        sum += objects;
        used += objects != 0;
    }
    CHECK_EQUAL(sum, THREADS * 3 * 20000);
    /* A stack that two threads add while the index grows may be there twice. How often depends on the scheduler. */
    CHECK(used >= 40000 && used < 80000);
    fixture_free(shared);
}

int main(void) {
    check_basics();
    check_full();
    check_folding();
    check_room_for_others(true);
    check_room_for_others(false);
    check_threads();
    return check_result();
}
