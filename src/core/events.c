#include "core/events.h"

#include "core/heap_size.h"
#include "core/heap_table.h"
#include "core/sampler.h"
#include "core/stack_table.h"
#include "core/timeline.h"
#include "platform/counter.h"

#include <string.h>

/* The figures are sums that nothing else is read on the strength of: relaxed throughout (counter.h). One
 * thing is promised to readers: that no more was freed than allocated. A block's allocation is counted before
 * its release fence (live_table_withdraw) and its free after that, and readers read frees before allocations. */

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

static __attribute__((noinline)) void save_figures(
    struct stack_record *stack, uint64_t epoch, _Atomic uint64_t *noted) {
    uint64_t seen = counter_load(&stack->peak_epoch);
    if (seen == epoch) {
        counter_store(noted, epoch);
        return;
    }
    uint64_t bytes = counter_load(&stack->alloc_bytes) - stack_freed_bytes(stack);
    uint64_t objects = counter_load(&stack->alloc_objects) - counter_load(&stack->freed_objects);
    /* Relaxed: one thread is to save, the exchange says which. A reader in another process that comes between
     * it and the stores has the figures of the peak before; it asks for the epoch before and after. */
    if (!atomic_compare_exchange_strong_explicit(
            &stack->peak_epoch, &seen, epoch, memory_order_relaxed, memory_order_relaxed))
        return;
    counter_store(&stack->saved_bytes, bytes);
    counter_store(&stack->saved_objects, objects);
    counter_store(noted, epoch);
}

/* Before a stack's live figures change: if a new global peak was set since they last did, they are those of
 * the peak, and are kept (recording.h, peak_epoch). `noted` is the epoch beside the figures that are about to
 * change: it tells without a look at another cache line. */
static inline void save_peak(
    struct recording_header *header, struct stack_record *stack, _Atomic uint64_t *noted) {
    uint64_t epoch = counter_load(&header->peak_epoch);
    if (counter_load(noted) != epoch) save_figures(stack, epoch, noted);
}

/* What a sample stands for. */
struct weight {
    uint64_t bytes, objects;
    bool exact;
};

/* A sample of malloc's may have been drawn at another rate than the first one, which its stack tells. An
 * exact recording has no other. */
static inline struct weight weigh(
    struct recording *recording, const struct sample *sample, const struct stack_record *stack) {
    uint64_t rate = recording->header->rate;
    uint32_t heap = sample->heap || rate == 1 ? sample->heap : stack->heap;
    if (heap) rate = heap_table_rate(recording, heap);
    uint64_t bytes = sampler_weight(sample->size, rate);
    uint64_t objects = rate == 1 ? OBJECT_ONE : sampler_objects(sample->size, bytes);
    return (struct weight){bytes, objects * sample->count, rate == 1};
}

/* `sign` is 1, or -1 for a sample that is taken back. */
static __attribute__((noinline)) void count_sample(
    struct stack_record *stack, struct sample sample, struct weight weight, int sign) {
    double size = (double)sample.size, bytes = (double)weight.bytes / BYTE_ONE;
    double count = sample.count, objects = (double)weight.objects / OBJECT_ONE;
    counter_add(false, &stack->samples, (uint64_t)sign);
    counter_add(false, &stack->sampled_bytes, sign > 0 ? sample.size : -sample.size);
    if (bytes > size) {
        add_real(&stack->bytes_variance, sign * bytes * (bytes - size));
        add_real(&stack->objects_variance, sign * objects * (objects - count));
    }
}

/* Whether a stack that has allocated so much has more than ever. What had been freed at some time is often
 * enough to see that it has not; it is noted where that will do for a while. Others may have allocated and
 * freed since it had `bytes`: then it is not for us to tell. */
static inline bool is_own_peak(struct stack_record *stack, uint64_t bytes, bool alone, uint64_t *ret_live) {
    uint64_t peak = counter_load(&stack->peak_bytes);
    if (!alone && (int64_t)(bytes - counter_load(&stack->freed_seen)) <= (int64_t)peak) return false;
    uint64_t freed = stack_freed_bytes(stack);
    *ret_live = bytes - freed;
    if (!alone && (int64_t)(peak - *ret_live) > (int64_t)(peak / 2)) counter_store(&stack->freed_seen, freed);
    return (int64_t)*ret_live > (int64_t)peak;
}

/* The stack's part of an allocation. */
static inline void stack_gains(struct recording_header *header, struct stack_record *stack,
    const struct sample *sample, const struct weight *weight, bool alone) {
    save_peak(header, stack, &stack->alloc_epoch);
    uint64_t objects = counter_sum(alone, &stack->alloc_objects, weight->objects);
    uint64_t bytes = counter_sum(alone, &stack->alloc_bytes, weight->bytes);
    uint64_t live;
    if (is_own_peak(stack, bytes, alone, &live) && counter_raise(alone, &stack->peak_bytes, live))
        counter_store(&stack->peak_objects, objects - counter_load(&stack->freed_objects));
    if (!weight->exact) count_sample(stack, *sample, *weight, 1);
}

/* Whether the block was there when the heap was largest: then the figures of that moment hold it. */
static bool was_at_peak(struct recording_header *header, const struct sample *sample) {
    return sample->birth <= counter_load(&header->peak_time);
}

/* As if the block had never been allocated here. */
static void stack_loses(struct recording_header *header, struct stack_record *stack,
    const struct sample *sample, const struct weight *weight) {
    save_peak(header, stack, &stack->alloc_epoch);
    if (was_at_peak(header, sample)) {
        counter_add(false, &stack->saved_bytes, -weight->bytes);
        counter_add(false, &stack->saved_objects, -weight->objects);
    }
    counter_add(false, &stack->alloc_objects, -weight->objects);
    uint64_t live = counter_sum(false, &stack->alloc_bytes, -weight->bytes) - stack_freed_bytes(stack);
    if (counter_load(&stack->peak_bytes) == live + weight->bytes) { /* its own peak is now */
        counter_add(false, &stack->peak_bytes, -weight->bytes);
        counter_add(false, &stack->peak_objects, -weight->objects);
    }
    if (!weight->exact) count_sample(stack, *sample, *weight, -1);
}

void events_allocate(struct recording *recording, struct thread_record *thread, const struct sample *sample) {
    struct recording_header *header = recording->header;
    struct stack_record *stack = stack_table_get(recording, sample->stack);
    struct weight weight = weigh(recording, sample, stack);
    bool alone = counter_alone();

    timeline_note(recording, thread, sample->birth);
    stack_gains(header, stack, sample, &weight, alone);
    uint64_t live = heap_size_grow(recording, thread, weight.bytes, sample->birth, alone);
    timeline_grow(recording, thread, live, weight.bytes, alone);
}

void events_move(struct recording *recording, const struct sample *sample, uint32_t to) {
    struct stack_record *stack = stack_table_get(recording, sample->stack);
    struct weight weight = weigh(recording, sample, stack);
    struct recording_header *header = recording->header;
    struct stack_record *typed = stack_table_get(recording, to);
    stack_loses(header, stack, sample, &weight);
    stack_gains(header, typed, sample, &weight, false);
    if (was_at_peak(header, sample)) {
        counter_add(false, &typed->saved_bytes, weight.bytes);
        counter_add(false, &typed->saved_objects, weight.objects);
    }
}

void events_withdraw(struct recording *recording, const struct sample *sample) {
    struct stack_record *stack = stack_table_get(recording, sample->stack);
    struct weight weight = weigh(recording, sample, stack);
    struct recording_header *header = recording->header;
    stack_loses(header, stack, sample, &weight);
    bool was_counted = was_at_peak(header, sample);
    counter_add(false, &header->live_bytes, -weight.bytes);
    if (was_counted) counter_add(false, &header->peak_bytes, -weight.bytes);
    heap_size_change(recording, 0, counter_load(&header->peak_time));
}

/* One of a pair of counters that only grow: what was live becomes what is `wanted`. Returns the difference.
 */
static uint64_t settle(
    _Atomic uint64_t *allocated, uint64_t freed, _Atomic uint64_t *freed_later, uint64_t wanted) {
    uint64_t live = counter_load(allocated) - freed;
    bool grows = wanted > live;
    counter_add(false, grows ? allocated : freed_later, grows ? wanted - live : live - wanted);
    return wanted - live;
}

void events_settle(
    struct recording *recording, uint32_t number, uint64_t objects, uint64_t bytes, uint64_t now) {
    struct stack_record *stack = stack_table_get(recording, number);
    save_peak(recording->header, stack, &stack->alloc_epoch);
    settle(&stack->alloc_objects, counter_load(&stack->freed_objects), &stack->freed_objects, objects);
    uint64_t change = settle(&stack->alloc_bytes, stack_freed_bytes(stack), &stack->lasting_bytes, bytes);
    if (counter_raise(false, &stack->peak_bytes, bytes)) counter_store(&stack->peak_objects, objects);
    heap_size_change(recording, change, now);
}

void events_inherit(struct recording *recording, const struct live_entry *entry) {
    struct stack_record *stack = stack_table_get(recording, entry->stack);
    struct sample sample = sample_of_entry(entry, 0, stack->heap);
    struct weight weight = weigh(recording, &sample, stack);
    stack->alloc_bytes += weight.bytes;
    stack->alloc_objects += weight.objects;
    recording->header->live_bytes += weight.bytes;
}

void events_free(
    struct recording *recording, struct thread_record *thread, const struct sample *sample, uint64_t now) {
    struct recording_header *header = recording->header;
    struct stack_record *stack = stack_table_get(recording, sample->stack);
    struct weight weight = weigh(recording, sample, stack);
    unsigned lifetime = lifetime_bucket(now > sample->birth ? now - sample->birth : 0);
    bool alone = counter_alone();

    if (thread)
        timeline_note(recording, thread, now);
    else
        counter_store(&header->last_event, now);
    save_peak(header, stack, &stack->freed_epoch);
    counter_add(alone, &stack->freed_objects, weight.objects);
    counter_add(alone, &stack->lifetime[lifetime], weight.objects);
    counter_add(
        alone, lifetime < TEMPORARY_BUCKETS ? &stack->temporary_bytes : &stack->lasting_bytes, weight.bytes);
    heap_size_shrink(recording, thread, weight.bytes, now, alone);
}
