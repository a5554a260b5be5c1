/* The heap's peak by two halves of the sampling points, and what events add to it: no bias, and a free takes away what
 * its allocation added. Also what events do to the running sums, and to blocks that were inherited. */
#include "check.h"
#include "core/events.h"
#include "core/heap_table.h"
#include "core/live_table.h"
#include "core/peak_halves.h"
#include "core/running_sums.h"
#include "core/sampler.h"
#include "core/stack_table.h"
#include "core/thread_table.h"
#include "core/timeline.h"
#include "recording_fixture.h"

#include <math.h>

enum { RATE = 4096 };

/* A half sees a sampled block with probability q / p, and then counts s / q bytes: s / p on average. And what the half
 * says of the heap's size is s where it has seen the block; else the other half has, and it is s / q. */
static void a_half_has_no_bias(void) {
    static const uint64_t sizes[] = {16, 1000, 4096, 10000, 60000};
    enum { DRAWS = 400000 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double seen[2] = {0}, size[2] = {0}, s = (double)sizes[i];
        double weight = (double)sampler_weight(sizes[i], RATE) / BYTE_ONE, p = s / weight;
        double q = s * BYTE_ONE / (double)sampler_weight(sizes[i], 2 * RATE);
        for (uint64_t draw = 0; draw < DRAWS; draw++) {
            struct sample sample = sample_of_malloc(sizes[i], 1600 * draw, 1, 0);
            struct half_weights weights = peak_halves_of(&sample, RATE);
            for (int half = 0; half < 2; half++) {
                seen[half] += (double)weights.seen[half] / BYTE_ONE / DRAWS;
                size[half] += (double)weights.size[half] / BYTE_ONE / DRAWS;
            }
        }
        /* Six standard errors of a mean of 0 or s / q. */
        double error = 6 * s / q * sqrt(0.25 / DRAWS);
        /* Given that it was sampled: q/p × s + (1 − q/p) × s/q = (s/p) (q + (p − q)/q). */
        double expected = s / p * (q + (p - q) / q);
        for (int half = 0; half < 2; half++) {
            CHECK(fabs(seen[half] - weight) <= error + 1);
            CHECK(fabs(size[half] - expected) <= error + 1);
        }
    }
}

static struct recording *start(uint64_t rate) {
    struct recording *recording = fixture_recording(8 << 20);
    recording->header->rate = rate;
    thread_table_start(recording);
    live_table_start(recording);
    heap_table_start(recording);
    stack_table_start(recording);
    timeline_start(recording);
    return recording;
}

static struct thread_record *new_thread(struct recording *recording) {
    struct thread_record *thread = thread_table_get(recording, thread_table_register(recording, 1, 0));
    thread->moment = UINT64_MAX;
    return thread;
}

static uint32_t some_stack(struct recording *recording) {
    return stack_table_intern(
        recording, &(struct stack_key){.frames = (const uint64_t[]){17}, .frame_count = 1});
}

/* A free may know of the birth what a mark holds, and no more. */
static void a_free_takes_away_what_was_added(void) {
    struct recording *recording = start(RATE);
    struct recording_header *header = recording->header;
    struct thread_record *one = new_thread(recording), *other = new_thread(recording);
    uint32_t stack = some_stack(recording);
    enum { BLOCKS = 1000 };
    for (uint64_t i = 1; i <= BLOCKS; i++) {
        struct sample sample = sample_of_malloc(i * 20, 1000 * i + 7, stack, 0);
        events_allocate(recording, one, &sample);
    }
    double live = (double)header->live_bytes / BYTE_ONE;
    for (int half = 0; half < 2; half++) {
        CHECK(fabs((double)header->halves[half].seen / BYTE_ONE / live - 1) < 0.2);
        CHECK_EQUAL(header->halves[half].seen, header->halves[half].most_seen);
        CHECK_EQUAL(header->halves[half].size, header->halves[half].size_then);
    }
    CHECK(fabs(peak_halves_estimate(header, 0) / live - 1) < 0.2);
    CHECK_EQUAL(one->sums.live_samples, BLOCKS);
    CHECK(fabs(running_sums_real(&one->sums.live_variance) / running_sums_real(&one->sums.total_variance) -
               1) < 1e-9);
    for (uint64_t i = 1; i <= BLOCKS; i++) {
        struct sample sample = sample_of_malloc(i * 20, (1000 * i + 7) >> 4 << 4, stack, 0);
        events_free(recording, other, &sample, 2000000);
    }
    for (int half = 0; half < 2; half++) {
        CHECK_EQUAL(header->halves[half].seen, 0);
        CHECK_EQUAL(header->halves[half].size, 0);
    }
    CHECK_EQUAL(one->sums.live_samples + other->sums.live_samples, 0);
    CHECK_EQUAL(one->sums.live_objects + other->sums.live_objects, 0);
    thread_table_end(recording, one, 3000000);
    CHECK_EQUAL(one->sums.total_bytes, 0);
    CHECK_EQUAL(header->sums.total_bytes, stack_table_get(recording, stack)->alloc_bytes);
    CHECK_EQUAL(header->sums.total_objects, stack_table_get(recording, stack)->alloc_objects);
}

static void exact_recordings_keep_no_halves(void) {
    struct recording *recording = start(1);
    struct sample sample = sample_of_malloc(1000, 5, some_stack(recording), 0);
    events_allocate(recording, new_thread(recording), &sample);
    CHECK_EQUAL(recording->header->halves[0].seen + recording->header->halves[1].size, 0);
    CHECK_EQUAL(peak_halves_estimate(recording->header, 0), 1000);
    CHECK_EQUAL(peak_halves_estimate(recording->header, 2000), 2000);
}

static void a_block_that_was_inherited_is_never_temporary(void) {
    for (int inherited = 0; inherited < 2; inherited++) {
        struct recording *recording = start(1);
        uint32_t number = some_stack(recording);
        struct stack_record *stack = stack_table_get(recording, number);
        struct sample sample = sample_of_malloc(1000, 500, number, 0);
        recording->header->inherited_until = inherited ? 600 : 0;
        events_allocate(recording, new_thread(recording), &sample);
        events_free(recording, NULL, &sample, 700);
        CHECK_EQUAL(stack->temporary_bytes, inherited ? 0 : 1000 * BYTE_ONE);
        CHECK_EQUAL(stack->lasting_bytes, inherited ? 1000 * BYTE_ONE : 0);
        for (int i = 0; i < TEMPORARY_BUCKETS && inherited; i++) CHECK_EQUAL(stack->lifetime[i], 0);
    }
}

int main(void) {
    a_half_has_no_bias();
    a_free_takes_away_what_was_added();
    exact_recordings_keep_no_halves();
    a_block_that_was_inherited_is_never_temporary();
    return check_result();
}
