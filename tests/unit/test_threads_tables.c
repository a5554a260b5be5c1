/* Tables that threads add to at once: each name, code and heap is whole as soon as its number is known, and a
 * record of a thread belongs to one at a time. ./dev check --thread watches every access of this. */
#include "check.h"
#include "core/code_table.h"
#include "core/heap_table.h"
#include "core/name_table.h"
#include "core/thread_table.h"
#include "recording_fixture.h"

#include <pthread.h>

enum { THREADS = 4, NAMES = REPEAT(2000), CODES = REPEAT(2000), HEAPS = 100, LIVES = REPEAT(20000) };

static struct recording *shared;
static _Atomic uint64_t wrong;

static struct recording *start(void) {
    struct recording *recording = fixture_recording(64 << 20);
    recording->header->rate = 1;
    thread_table_start(recording);
    CHECK(name_table_start(recording) && heap_table_start(recording) && code_table_start(recording));
    return recording;
}

static void together(void *(*work)(void *)) {
    pthread_t thread[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) CHECK_EQUAL(pthread_create(&thread[i], NULL, work, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
}

/* ---- names ---- */

static uint32_t name_numbers[THREADS][NAMES];

static const char *text_of(uint32_t number) {
    struct name_record *record = table_entry(shared, &shared->header->names, number);
    return arena_at(shared, record->text);
}

static void *note_names(void *argument) {
    uint32_t *mine = name_numbers[(uintptr_t)argument];
    for (uint32_t i = 0; i < NAMES; i++) {
        char name[32];
        snprintf(name, sizeof name, "name %u", i);
        mine[i] = name_table_note(shared, name);
        wrong += mine[i] == NAME_NONE || strcmp(text_of(mine[i]), name) != 0;
    }
    return NULL;
}

static void a_name_has_one_number(void) {
    together(note_names);
    CHECK_EQUAL(wrong, 0);
    for (int thread = 1; thread < THREADS; thread++)
        CHECK(memcmp(name_numbers[thread], name_numbers[0], sizeof name_numbers[0]) == 0);
    uint32_t count = atomic_load(&shared->names_noted);
    for (uint32_t i = 0; i < NAMES; i++) CHECK(name_numbers[0][i] < count);
}

/* ---- code ---- */

static uint64_t key_of(uint32_t i) {
    return UINT64_C(0x7f0000000001) + i * UINT64_C(64);
}

static bool is_whole_code(uint32_t number, uint32_t i) {
    char name[32];
    snprintf(name, sizeof name, "function %u", i);
    const struct code_record *record = table_entry(shared, &shared->header->code_objects, number);
    return record->complete == 1 && record->first_line == i && record->file == i + 7 &&
           strcmp(arena_at(shared, record->name), name) == 0;
}

static void *note_codes(void *argument) {
    (void)argument;
    for (uint32_t i = 0; i < CODES; i++) {
        char name[32];
        snprintf(name, sizeof name, "function %u", i);
        uint32_t number = code_table_find(key_of(i));
        if (number == CODE_NONE)
            number = code_table_note(
                shared, key_of(i), &(struct code){.name = name, .file = i + 7, .first_line = i});
        wrong += number == CODE_NONE || !is_whole_code(number, i);
    }
    return NULL;
}

static void a_code_that_is_found_is_whole(void) {
    together(note_codes);
    CHECK_EQUAL(wrong, 0);
    for (uint32_t i = 0; i < CODES; i++) {
        uint32_t number = code_table_find(key_of(i));
        CHECK(number != CODE_NONE && is_whole_code(number, i));
    }
}

/* ---- heaps ---- */

static void *note_heaps(void *argument) {
    for (uint32_t i = 0; i < HEAPS; i++) {
        uint32_t name = 1 + (uint32_t)(uintptr_t)argument * HEAPS + i;
        uint32_t number = heap_table_note(shared, name, name * UINT64_C(1000), HEAP_REPORTED);
        wrong += number == HEAP_NONE || heap_table_rate(shared, number) != name * UINT64_C(1000);
    }
    return NULL;
}

static void each_heap_has_a_number_of_its_own(void) {
    together(note_heaps);
    CHECK_EQUAL(wrong, 0);
    CHECK_EQUAL(shared->header->heaps.count, 1 + THREADS * HEAPS);
    CHECK_EQUAL(atomic_load(&shared->heaps_noted), 1 + THREADS * HEAPS);
    uint64_t sum = 0;
    for (uint32_t number = 1; number <= THREADS * HEAPS; number++) sum += heap_table_rate(shared, number);
    CHECK_EQUAL(sum, UINT64_C(1000) * THREADS * HEAPS * (THREADS * HEAPS + 1) / 2);
}

/* ---- threads ---- */

static _Atomic uint64_t bytes_given;

/* A thread's life, again and again: its record begins empty, no other thread writes into it, and it ends. One life
 * in four has a sample. */
static void *live_and_end(void *argument) {
    int32_t self = 1 + (int32_t)(uintptr_t)argument;
    for (uint64_t i = 0; i < LIVES; i++) {
        uint32_t number = thread_table_register(shared, self, i);
        if (number == UINT32_MAX) {
            wrong++;
            continue;
        }
        struct thread_record *record = thread_table_get(shared, number);
        wrong += record->bytes || record->samples || record->end_time || record->spare_count;
        record->spare_count = self;
        atomic_store_explicit(&record->bytes, i, memory_order_relaxed);
        atomic_store_explicit(&record->samples, i % 4 == 0, memory_order_relaxed);
        wrong += record->spare_count != self || record->tid != self || record->start_time != i;
        bytes_given += i;
        thread_table_end(shared, record, i + 1);
    }
    return NULL;
}

static void a_record_has_one_owner_at_a_time(void) {
    together(live_and_end);
    CHECK_EQUAL(wrong, 0);
    uint64_t count = shared->header->threads.count, sum = shared->header->orphan_bytes;
    CHECK(count > 1024 && count < 2048); /* those that ended are used again when many have gathered */
    for (uint32_t i = 0; i < count; i++) {
        struct thread_record *record = thread_table_get(shared, i);
        CHECK(record->state == THREAD_ENDED || record->state == THREAD_FREE);
        sum += record->bytes;
    }
    CHECK_EQUAL(sum, bytes_given);
}

/* Twice the number of a life, plus one while its thread is being registered. All other threads have ended. */
static _Atomic uint64_t phase;
static _Atomic bool over;
static uint64_t seen_running;

static void *register_again_and_again(void *argument) {
    (void)argument;
    for (uint64_t life = 1; life <= LIVES; life++) {
        phase = 2 * life + 1;
        uint32_t number = thread_table_register(shared, 7, life);
        phase = 2 * life;
        thread_table_end(shared, thread_table_get(shared, number), life);
    }
    over = true;
    return NULL;
}

static void what_is_seen_to_run_is_filled(void) {
    pthread_t thread;
    shared = start(); /* where a few records are used again and again */
    CHECK_EQUAL(pthread_create(&thread, NULL, register_again_and_again, NULL), 0);
    while (!over)
        for (uint32_t i = 0; i < shared->header->threads.count; i++) {
            struct thread_record *record = thread_table_get(shared, i);
            uint64_t before = phase;
            if (atomic_load_explicit(&record->state, memory_order_acquire) != THREAD_RUNNING) continue;
            uint64_t start = __atomic_load_n(&record->start_time, __ATOMIC_RELAXED);
            int32_t tid = atomic_load_explicit(&record->tid, memory_order_relaxed);
            atomic_thread_fence(memory_order_acquire);
            if (before % 2 == 0 || phase != before) continue;
            seen_running++;
            wrong += start != before / 2 || tid != 7;
        }
    pthread_join(thread, NULL);
    CHECK_EQUAL(wrong, 0);
    fprintf(stderr, "%lu times a record was seen running before its thread knew it\n",
        (unsigned long)seen_running);
    fixture_free(shared);
}

int main(void) {
    shared = start();
    a_name_has_one_number();
    a_code_that_is_found_is_whole();
    each_heap_has_a_number_of_its_own();
    a_record_has_one_owner_at_a_time();
    fixture_free(shared);
    what_is_seen_to_run_is_filled();
    return check_result();
}
