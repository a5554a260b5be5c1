#include "core/events.h"

#include "core/counter.h"
#include "core/live_table.h"
#include "core/sampler.h"
#include "core/stack_table.h"
#include "core/timeline.h"

#include <string.h>

/* A double kept as its bits. */
static void add_real(_Atomic uint64_t *bits, double value) {
    uint64_t old = counter_load(bits), new;
    do {
        double sum;
        memcpy(&sum, &old, sizeof sum);
        sum += value;
        memcpy(&new, &sum, sizeof new);
    } while (
        !atomic_compare_exchange_weak_explicit(bits, &old, new, memory_order_relaxed, memory_order_relaxed));
}

/* Before a stack's live figures change: if a new global peak was set since they last did, they are those of
 * the peak, and are kept (recording.h, peak_epoch). */
static void save_peak(struct recording_header *header, struct stack_record *stack) {
    uint64_t epoch = counter_load(&header->peak_epoch), seen = counter_load(&stack->peak_epoch);
    if (seen == epoch) return;
    uint64_t bytes = counter_load(&stack->alloc_bytes) - counter_load(&stack->freed_bytes);
    uint64_t objects = counter_load(&stack->alloc_objects) - counter_load(&stack->freed_objects);
    if (!atomic_compare_exchange_strong_explicit(
            &stack->peak_epoch, &seen, epoch, memory_order_relaxed, memory_order_relaxed))
        return;
    counter_store(&stack->saved_bytes, bytes);
    counter_store(&stack->saved_objects, objects);
}

void event_count(struct stack_record *stack, const struct live_entry *entry, bool exact) {
    uint64_t objects = sampler_objects(entry->size, entry->weight);
    counter_add(&stack->alloc_objects, objects);
    counter_add(&stack->alloc_bytes, entry->weight);
    if (exact) return;
    double size = (double)entry->size, w = (double)entry->weight / BYTE_ONE, n = (double)objects / OBJECT_ONE;
    counter_add(&stack->samples, 1);
    counter_add(&stack->sampled_bytes, entry->size);
    if (w > size) {
        add_real(&stack->bytes_variance, w * (w - size));
        add_real(&stack->objects_variance, n * (n - 1));
    }
}

enum event_outcome event_allocate(
    struct recording *recording, uint64_t address, const struct live_entry *entry) {
    struct recording_header *header = recording->header;
    bool exact = atomic_load_explicit(&header->flags, memory_order_relaxed) & RECORDING_EXACT;
    struct live_entry former;
    /* A former entry of this address anywhere in the table: to look for it costs too much where all is
     * recorded. */
    bool replaced = !exact && live_table_remove(recording, address, &former);
    if (replaced) event_free(recording, &former, entry->birth, UINT32_MAX);
    switch (live_table_insert(recording, address, entry, &former)) {
    case LIVE_NO_ROOM:
        counter_add(&header->drops[address & ~LIVE_KEY_MASK ? DROP_ADDRESS : DROP_LIVE_TABLE], 1);
        return EVENT_DROPPED;
    case LIVE_REPLACED:
        event_free(recording, &former, entry->birth, UINT32_MAX);
        replaced = true;
        break;
    case LIVE_INSERTED:
        break;
    }
    struct stack_record *stack = stack_table_get(recording, entry->stack);
    uint64_t weight = entry->weight, objects = sampler_objects(entry->size, weight);

    save_peak(header, stack);
    event_count(stack, entry, exact);
    uint64_t stack_bytes = counter_load(&stack->alloc_bytes) - counter_load(&stack->freed_bytes);
    if (counter_raise(&stack->peak_bytes, stack_bytes))
        counter_store(
            &stack->peak_objects, counter_load(&stack->alloc_objects) - counter_load(&stack->freed_objects));

    uint64_t live_objects = counter_add(&header->live_objects, objects);
    uint64_t live = counter_add(&header->live_bytes, weight);
    if (counter_raise(&header->peak_bytes, live)) {
        counter_store(&header->peak_objects, live_objects);
        counter_store(&header->peak_time, entry->birth);
        counter_add(&header->peak_epoch, 1);
    }
    timeline_note(recording, entry->birth, live, weight);
    counter_store(&header->last_event, entry->birth);
    return replaced ? EVENT_REPLACED : EVENT_RECORDED;
}

void event_restore(struct recording *recording, uint64_t address, const struct live_entry *entry) {
    struct live_entry former;
    if (live_table_insert(recording, address, entry, &former) == LIVE_NO_ROOM)
        counter_add(&recording->header->drops[DROP_LIVE_TABLE], 1);
}

static int lifetime_bucket(uint64_t nanoseconds) {
    uint64_t microseconds = nanoseconds / 1000;
    if (microseconds == 0) return 0;
    int bucket = (63 - __builtin_clzll(microseconds)) / 2 + 1;
    return bucket < LIFETIME_BUCKETS ? bucket : LIFETIME_BUCKETS - 1;
}

void event_free(struct recording *recording, const struct live_entry *entry, uint64_t now, uint32_t thread) {
    struct recording_header *header = recording->header;
    struct stack_record *stack = stack_table_get(recording, entry->stack);
    uint64_t weight = entry->weight, objects = sampler_objects(entry->size, weight);
    uint64_t lifetime = now > entry->birth ? now - entry->birth : 0;

    save_peak(header, stack);
    counter_add(&stack->freed_objects, objects);
    counter_add(&stack->freed_bytes, weight);
    counter_add(&stack->lifetime[lifetime_bucket(lifetime)], objects);
    if (lifetime < TEMPORARY_NS && thread != UINT32_MAX && entry->thread == (uint16_t)thread) {
        counter_add(&stack->temporary_objects, objects);
        counter_add(&stack->temporary_bytes, weight);
    }
    if (!(atomic_load_explicit(&header->flags, memory_order_relaxed) & RECORDING_EXACT))
        counter_add(&stack->freed_samples, 1);

    counter_add(&header->live_objects, -objects);
    timeline_note(recording, now, counter_add(&header->live_bytes, -weight), 0);
    counter_store(&header->last_event, now);
}
