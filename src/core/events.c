#include "core/events.h"

#include "core/counter.h"
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

static __attribute__((noinline)) void count_sample(
    struct stack_record *stack, uint64_t size, uint64_t weight, uint64_t objects) {
    double s = (double)size, w = (double)weight / BYTE_ONE, n = (double)objects / OBJECT_ONE;
    counter_add(false, &stack->samples, 1);
    counter_add(false, &stack->sampled_bytes, size);
    if (w > s) {
        add_real(&stack->bytes_variance, w * (w - s));
        add_real(&stack->objects_variance, n * (n - 1));
    }
}

void event_allocate(struct recording *recording, struct thread_record *thread, const struct sample *sample) {
    struct recording_header *header = recording->header;
    struct stack_record *stack = stack_table_get(recording, sample->stack);
    uint64_t rate = header->rate, weight = sampler_weight(sample->size, rate);
    uint64_t objects = rate == 1 ? OBJECT_ONE : sampler_objects(sample->size, weight);
    bool alone = counter_alone();

    timeline_note(recording, thread, sample->birth);
    save_peak(header, stack);
    uint64_t stack_objects = counter_add(alone, &stack->alloc_objects, objects);
    uint64_t stack_bytes =
        counter_add(alone, &stack->alloc_bytes, weight) - counter_load(&stack->freed_bytes);
    if (counter_raise(alone, &stack->peak_bytes, stack_bytes))
        counter_store(&stack->peak_objects, stack_objects - counter_load(&stack->freed_objects));
    if (rate != 1) count_sample(stack, sample->size, weight, objects);

    uint64_t live = counter_add(alone, &header->live_bytes, weight);
    if (counter_raise(alone, &header->peak_bytes, live)) {
        counter_store(&header->peak_time, sample->birth);
        counter_add(alone, &header->peak_epoch, 1);
    }
    timeline_grow(recording, thread, live, weight, alone);
}

void event_inherit(struct recording *recording, const struct live_entry *entry) {
    struct recording_header *header = recording->header;
    struct stack_record *stack = stack_table_get(recording, entry->stack);
    uint64_t weight = sampler_weight(entry->size, header->rate);
    stack->alloc_bytes += weight;
    stack->alloc_objects += sampler_objects(entry->size, weight);
    header->live_bytes += weight;
}

static unsigned lifetime_bucket(uint64_t nanoseconds) {
    uint64_t units = nanoseconds >> LIFETIME_SHIFT;
    if (units == 0) return 0;
    unsigned bucket = (63 - (unsigned)__builtin_clzll(units)) / 2 + 1;
    return bucket < LIFETIME_BUCKETS ? bucket : LIFETIME_BUCKETS - 1;
}

void event_free(
    struct recording *recording, struct thread_record *thread, const struct sample *sample, uint64_t now) {
    struct recording_header *header = recording->header;
    struct stack_record *stack = stack_table_get(recording, sample->stack);
    uint64_t rate = header->rate, weight = sampler_weight(sample->size, rate);
    uint64_t objects = rate == 1 ? OBJECT_ONE : sampler_objects(sample->size, weight);
    unsigned lifetime = lifetime_bucket(now > sample->birth ? now - sample->birth : 0);
    bool alone = counter_alone();

    if (thread)
        timeline_note(recording, thread, now);
    else
        counter_store(&header->last_event, now);
    save_peak(header, stack);
    counter_add(alone, &stack->freed_objects, objects);
    counter_add(alone, &stack->freed_bytes, weight);
    counter_add(alone, &stack->lifetime[lifetime], objects);
    if (lifetime < TEMPORARY_BUCKETS) counter_add(alone, &stack->temporary_bytes, weight);
    counter_add(alone, &header->live_bytes, -weight);
}
