/* Events of several threads at once, each other's blocks among them: the figures of stacks, of the heap and
 * of the timeline add up, while the timeline is widened, others copy the live table, and nothing is torn.
 * ./dev check --thread watches every access of this. */
#include "check.h"
#include "core/events.h"
#include "core/heap_table.h"
#include "core/live_table.h"
#include "core/sampler.h"
#include "core/stack_table.h"
#include "core/thread_table.h"
#include "core/timeline.h"
#include "recording_fixture.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = REPEAT(20000), HELD = 64, STACKS = 50 };

static struct recording *shared;
static _Atomic uint64_t mailbox[THREADS], clock_ticks, wrong, allocated, events, copied;
static _Atomic bool over;

/* Moves on so fast that the timeline is widened again and again. */
static uint64_t now(void) {
    return atomic_fetch_add_explicit(&clock_ticks, 1, memory_order_relaxed) * 100000;
}

static uint32_t some_stack(uint64_t random) {
    const uint64_t frames[] = {random % STACKS, 17};
    return stack_table_intern(shared, &(struct stack_key){.frames = frames, .frame_count = 2});
}

/* An entry's fields follow from its birth. So a reader notices an entry whose words come from two blocks. */
static uint64_t size_of(uint64_t birth) {
    return birth % 1009 + 1;
}

static uint32_t allocate(struct thread_record *thread, uint64_t random) {
    struct live_entry *entry;
    uint64_t birth = now();
    struct sample sample = sample_of_malloc(size_of(birth), birth, some_stack(random), 0);
    sample.slot = live_table_take(shared, thread, &entry);
    if (sample.slot == LIVE_NONE) return LIVE_NONE;
    sample_store(&sample, entry);
    live_table_publish(entry, birth << 4 | 8);
    events_allocate(shared, thread, &sample);
    counter_add_own(&thread->samples, 1);
    atomic_fetch_add_explicit(&allocated, sample.size, memory_order_relaxed);
    atomic_fetch_add_explicit(&events, 1, memory_order_relaxed);
    return sample.slot;
}

/* `thread` is NULL for one without a record. */
static void release(struct thread_record *thread, uint32_t slot) {
    struct live_entry *entry = live_table_at(shared, slot);
    struct sample sample = sample_of_entry(entry, slot, 0);
    live_table_withdraw(entry);
    events_free(shared, thread, &sample, now());
    live_table_give(shared, thread, slot);
    atomic_fetch_add_explicit(&events, 1, memory_order_relaxed);
}

static void *work(void *argument) {
    uint64_t number = (uintptr_t)argument, state[4];
    uint32_t held[HELD] = {0};
    sampler_random_seed(state, number + 1);
    struct thread_record *thread =
        thread_table_get(shared, thread_table_register(shared, 1 + (int32_t)number, now()));
    thread->moment = UINT64_MAX;
    for (uint64_t i = 0; i < ROUNDS || !copied; i++) {
        uint64_t random = sampler_random_next(state);
        uint32_t *slot = &held[random >> 8 & (HELD - 1)];
        if (!*slot) {
            *slot = allocate(thread, random >> 20) + 1;
            wrong += !*slot;
        } else if (random >> 60 == 0) { /* for another thread to free */
            uint64_t former = atomic_exchange(&mailbox[(number + 1) % THREADS], *slot);
            if (former) release(thread, (uint32_t)former - 1);
            *slot = 0;
        } else {
            release(thread, *slot - 1);
            *slot = 0;
        }
    }
    for (int i = 0; i < HELD; i++)
        if (held[i]) release(thread, held[i] - 1);
    timeline_flush(shared, thread);
    live_table_give_all(shared, thread);
    thread_table_end(shared, thread, now());
    return NULL;
}

/* As the recorder does before a fork and for a dump. */
static void *look(void *argument) {
    (void)argument;
    while (!over) {
        uint64_t slots = atomic_load_explicit(&shared->header->live.count, memory_order_acquire);
        for (uint32_t slot = 0; slot < slots; slot++) {
            struct live_entry copy;
            if (!live_table_copy(live_table_at(shared, slot), 32, &copy)) continue;
            copied++;
            wrong += copy.size != size_of(copy.birth) || copy.count != 1 ||
                     (copy.key & LIVE_KEY_MASK) != (copy.birth << 4 | 8) ||
                     copy.stack >= atomic_load_explicit(&shared->header->stacks.count, memory_order_relaxed);
        }
    }
    return NULL;
}

static void figures_add_up(void) {
    struct recording_header *header = shared->header;
    CHECK_EQUAL(wrong, 0);
    CHECK(copied > 0);
    uint64_t bytes = 0, freed = 0, objects = 0, lifetimes = 0;
    for (uint32_t i = 0; i < header->stacks.count; i++) {
        struct stack_record *stack = stack_table_get(shared, i);
        bytes += stack->alloc_bytes;
        freed += stack_freed_bytes(stack);
        objects += stack->alloc_objects - stack->freed_objects;
        for (int k = 0; k < LIFETIME_BUCKETS; k++) lifetimes += stack->lifetime[k];
        CHECK(stack->peak_bytes <= header->peak_bytes);
    }
    CHECK_EQUAL(bytes, allocated * BYTE_ONE);
    CHECK_EQUAL(freed, bytes);
    CHECK_EQUAL(objects, 0);
    CHECK_EQUAL(lifetimes, events / 2 * OBJECT_ONE);
    CHECK_EQUAL(header->live_bytes, 0);
    CHECK_EQUAL(header->sums.total_bytes, bytes);
    CHECK_EQUAL(header->sums.total_objects, events / 2 * OBJECT_ONE);
    CHECK_EQUAL(header->sums.live_objects, 0);
    CHECK_EQUAL(header->sums.live_samples, 0);
    CHECK(header->peak_bytes > 0 && header->peak_epoch > 0);
}

/* A thread whose bucket is being merged drops its point: the timeline holds at most what was noted, and most of it. */
static void timeline_has_the_run(void) {
    const struct timeline *timeline = shared->timeline;
    CHECK(timeline->sequence > 0 && timeline->sequence % 2 == 0);
    uint64_t noted = 0, bytes = 0;
    for (int i = 0; i < TIMELINE_BUCKETS; i++) {
        noted += timeline->bucket[i].events;
        bytes += timeline->bucket[i].allocated;
        CHECK(timeline->bucket[i].live_max <= shared->header->peak_bytes);
    }
    fprintf(stderr, "%lu of %lu events in the timeline, widened %lu times, %lu entries copied\n",
        (unsigned long)noted, (unsigned long)events, (unsigned long)timeline->sequence / 2,
        (unsigned long)copied);
    CHECK(noted <= events && noted > events / 2);
    CHECK(bytes <= allocated * BYTE_ONE && bytes > allocated * BYTE_ONE / 2);
}

int main(void) {
    shared = fixture_recording(64 << 20);
    shared->header->rate = 1;
    thread_table_start(shared);
    live_table_start(shared);
    CHECK(heap_table_start(shared) && stack_table_start(shared) && timeline_start(shared));
    pthread_t thread[THREADS], looker;
    CHECK_EQUAL(pthread_create(&looker, NULL, look, NULL), 0);
    for (uintptr_t i = 0; i < THREADS; i++) CHECK_EQUAL(pthread_create(&thread[i], NULL, work, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    over = true;
    pthread_join(looker, NULL);
    for (int i = 0; i < THREADS; i++)
        if (mailbox[i]) release(NULL, (uint32_t)mailbox[i] - 1);
    figures_add_up();
    timeline_has_the_run();
    fixture_free(shared);
    return check_result();
}
