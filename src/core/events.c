#include "core/events.h"

#include "core/heap_size.h"
#include "core/heap_table.h"
#include "core/peak_halves.h"
#include "core/running_sums.h"
#include "core/sampler.h"
#include "core/stack_table.h"
#include "core/timeline.h"
#include "platform/counter.h"

#include <string.h>

/* The figures are sums by which nothing else is ordered: all updates are relaxed (counter.h). Readers are promised one
 * thing: freed ≤ allocated, for each stack. A block's allocation is counted before the release fence of its
 * live_table_withdraw, its free after that fence, and readers read what was freed, by acquire, before what was
 * allocated. */

/* Saves the stack's live figures as those of the peak with this epoch, unless another thread has. */
static __attribute__((noinline)) void save_figures(
    struct stack_record *stack, uint64_t epoch, _Atomic uint64_t *noted) {
    uint64_t seen = counter_load(&stack->peak_epoch);
    if (seen == epoch) {
        counter_store(noted, epoch);
        return;
    }
    uint64_t bytes = counter_load(&stack->alloc_bytes) - stack_freed_bytes(stack);
    uint64_t objects = counter_load(&stack->alloc_objects) - counter_load(&stack->freed_objects);
    /* Relaxed: the exchange decides which thread saves. A reader in another process that reads between the exchange
     * and the stores gets the saved figures of the peak before; it compares the epoch from before and after. */
    if (!atomic_compare_exchange_strong_explicit(
            &stack->peak_epoch, &seen, epoch, memory_order_relaxed, memory_order_relaxed))
        return;
    counter_store(&stack->saved_bytes, bytes);
    counter_store(&stack->saved_objects, objects);
    counter_store(noted, epoch);
}

/* To be called before a stack's live figures change. If the heap has had a new peak since they last changed, they
 * still are those of the peak, and are saved (stack_record.peak_epoch). `noted` is alloc_epoch or freed_epoch,
 * whichever is in the cache line that the event writes: in most cases it tells, without a look at another line,
 * that nothing is to be saved. */
static inline void save_peak(
    struct recording_header *header, struct stack_record *stack, _Atomic uint64_t *noted) {
    uint64_t epoch = counter_load(&header->peak_epoch);
    if (counter_load(noted) != epoch) save_figures(stack, epoch, noted);
}

/* What a sample stands for: docs/sampling.md, (2) and (3). */
struct weight {
    uint64_t bytes, objects; /* in units of 1 / BYTE_ONE and 1 / OBJECT_ONE */
    uint64_t rate;           /* the sampling interval that it was sampled at */
    bool exact;
};

/* The weight depends on the sampling interval of the sample's heap. The program may have changed malloc's interval
 * since the start: then the sample's stack has another heap of malloc's kind. In an exact recording it never
 * changes. The weight is not stored: size, count and interval of a sample never change, so a free computes what its
 * allocation added. */
static inline struct weight weigh(
    struct recording *recording, const struct sample *sample, const struct stack_record *stack) {
    uint64_t rate = recording->header->rate;
    uint32_t heap = sample->heap || rate == 1 ? sample->heap : stack->heap;
    if (heap) rate = heap_table_rate(recording, heap);
    uint64_t bytes = sampler_weight(sample->size, rate);
    uint64_t objects = rate == 1 ? OBJECT_ONE : sampler_objects(sample->size, bytes);
    return (struct weight){bytes, objects * sample->count, rate, rate == 1};
}

/* Counts a sample, and adds its variance: docs/sampling.md, (4) and (5). `sign` is 1, or -1 for a sample that is taken
 * back. */
static __attribute__((noinline)) void count_sample(
    struct stack_record *stack, struct sample sample, struct weight weight, int sign) {
    double size = (double)sample.size, bytes = (double)weight.bytes / BYTE_ONE;
    double count = sample.count, objects = (double)weight.objects / OBJECT_ONE;
    counter_add(false, &stack->samples, (uint64_t)sign);
    counter_add(false, &stack->sampled_bytes, sign > 0 ? sample.size : -sample.size);
    if (bytes > size) {
        running_sums_add_real(&stack->bytes_variance, sign * bytes * (bytes - size));
        running_sums_add_real(&stack->objects_variance, sign * objects * (objects - count));
    }
}

/* What a sample adds to the variance of the bytes: docs/sampling.md, (4). */
static double variance_of(const struct sample *sample, const struct weight *weight) {
    double size = (double)sample->size, bytes = (double)weight->bytes / BYTE_ONE;
    return bytes > size ? bytes * (bytes - size) : 0;
}

/* The sums of the thread, or those for events without one. */
static struct running_sums *sums_of(struct recording_header *header, struct thread_record *thread) {
    return thread ? &thread->sums : &header->sums;
}

/* The block is part of the totals. `sign` is 1, or -1 for a block that is taken back. */
static inline void sums_total(struct recording_header *header, struct thread_record *thread,
    const struct sample *sample, const struct weight *weight, int sign) {
    struct running_sums *sums = sums_of(header, thread);
    running_sums_add(&sums->total_bytes, sign > 0 ? weight->bytes : -weight->bytes, thread);
    running_sums_add(&sums->total_objects, sign > 0 ? weight->objects : -weight->objects, thread);
    if (!weight->exact) running_sums_add_real(&sums->total_variance, sign * variance_of(sample, weight));
}

/* The block is live, or, if `sign` is -1, no longer. */
static inline void sums_live(struct recording_header *header, struct thread_record *thread,
    const struct sample *sample, const struct weight *weight, int sign) {
    struct running_sums *sums = sums_of(header, thread);
    running_sums_add(&sums->live_objects, sign > 0 ? weight->objects : -weight->objects, thread);
    running_sums_add(&sums->live_samples, (uint64_t)sign, thread);
    if (!weight->exact) running_sums_add_real(&sums->live_variance, sign * variance_of(sample, weight));
}

/* The halves of the sampling points (core/peak_halves.h) are not kept where every block is recorded. */
static bool has_halves(const struct recording_header *header) {
    return header->rate != 1;
}

static __attribute__((noinline)) void halves_grow(
    struct recording_header *header, struct sample sample, uint64_t rate, bool alone) {
    struct half_weights weights = peak_halves_of(&sample, rate);
    peak_halves_grow(header, &weights, alone);
}

static __attribute__((noinline)) void halves_shrink(
    struct recording_header *header, struct sample sample, uint64_t rate, bool alone) {
    struct half_weights weights = peak_halves_of(&sample, rate);
    peak_halves_shrink(header, &weights, alone);
}

/* Whether a stack that has allocated `bytes` in total has more live bytes than ever; *ret_live is then how many.
 *
 * freed_seen is what had been freed at some earlier time. It lies in the cache line that allocations write, while
 * the current sum lies in the line that frees write. bytes − freed_seen ≥ live bytes, so if that is not above the
 * peak, there is no need to look at the other line. freed_seen is brought up to date when the live bytes are far
 * below the peak.
 *
 * Other threads may have allocated and freed since this thread's addition gave `bytes`. Then the live bytes
 * computed here may be too small, and may even be negative; the other threads judge their own sums. */
static inline bool is_own_peak(struct stack_record *stack, uint64_t bytes, bool alone, uint64_t *ret_live) {
    uint64_t peak = counter_load(&stack->peak_bytes);
    if (!alone && (int64_t)(bytes - counter_load(&stack->freed_seen)) <= (int64_t)peak) return false;
    uint64_t freed = stack_freed_bytes(stack);
    *ret_live = bytes - freed;
    if (!alone && (int64_t)(peak - *ret_live) > (int64_t)(peak / 2)) counter_store(&stack->freed_seen, freed);
    return (int64_t)*ret_live > (int64_t)peak;
}

/* Counts an allocation for its stack. */
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

/* Whether the block was allocated before the heap's peak: then the figures at the peak include it. */
static bool was_at_peak(struct recording_header *header, const struct sample *sample) {
    return sample->birth <= counter_load(&header->peak_time);
}

/* Takes an allocation back, as if the block had never been allocated from this stack. */
static void stack_loses(struct recording_header *header, struct stack_record *stack,
    const struct sample *sample, const struct weight *weight) {
    save_peak(header, stack, &stack->alloc_epoch);
    if (was_at_peak(header, sample)) {
        counter_add(false, &stack->saved_bytes, -weight->bytes);
        counter_add(false, &stack->saved_objects, -weight->objects);
    }
    counter_add(false, &stack->alloc_objects, -weight->objects);
    uint64_t live = counter_sum(false, &stack->alloc_bytes, -weight->bytes) - stack_freed_bytes(stack);
    if (counter_load(&stack->peak_bytes) == live + weight->bytes) { /* its own peak was with this block */
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
    if (has_halves(header)) halves_grow(header, *sample, weight.rate, alone);
    sums_total(header, thread, sample, &weight, 1);
    sums_live(header, thread, sample, &weight, 1);
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
    if (has_halves(header)) {
        struct half_weights halves = peak_halves_of(sample, weight.rate);
        peak_halves_withdraw(header, &halves, was_counted);
    }
    sums_total(header, NULL, sample, &weight, -1);
    sums_live(header, NULL, sample, &weight, -1);
    heap_size_change(recording, 0, counter_load(&header->peak_time));
}

/* Makes allocated − freed = `wanted`, by raising one of the two counters: neither ever goes down. Returns
 * `wanted` less what was live, modulo 2^64. */
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
    uint64_t more =
        settle(&stack->alloc_objects, counter_load(&stack->freed_objects), &stack->freed_objects, objects);
    uint64_t change = settle(&stack->alloc_bytes, stack_freed_bytes(stack), &stack->lasting_bytes, bytes);
    if (counter_raise(false, &stack->peak_bytes, bytes)) counter_store(&stack->peak_objects, objects);
    heap_size_change(recording, change, now);
    if (has_halves(recording->header)) peak_halves_change(recording->header, change);
    struct running_sums *sums = &recording->header->sums;
    counter_add(false, &sums->live_objects, more);
    if ((int64_t)more > 0) counter_add(false, &sums->total_objects, more);
    if ((int64_t)change > 0) counter_add(false, &sums->total_bytes, change);
}

void events_inherit(struct recording *recording, const struct live_entry *entry) {
    struct stack_record *stack = stack_table_get(recording, entry->stack);
    struct sample sample = sample_of_entry(entry, 0, stack->heap);
    struct weight weight = weigh(recording, &sample, stack);
    stack->alloc_bytes += weight.bytes;
    stack->alloc_objects += weight.objects;
    recording->header->live_bytes += weight.bytes;
    if (has_halves(recording->header)) halves_grow(recording->header, sample, weight.rate, true);
    sums_live(recording->header, NULL, &sample, &weight, 1);
}

void events_free(
    struct recording *recording, struct thread_record *thread, const struct sample *sample, uint64_t now) {
    struct recording_header *header = recording->header;
    struct stack_record *stack = stack_table_get(recording, sample->stack);
    struct weight weight = weigh(recording, sample, stack);
    unsigned lifetime = lifetime_bucket(now > sample->birth ? now - sample->birth : 0);
    /* A block that was inherited is in no total of this recording, so it is not among its temporary ones either. */
    if (sample->birth < header->inherited_until && lifetime < TEMPORARY_BUCKETS) lifetime = TEMPORARY_BUCKETS;
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
    if (has_halves(header)) halves_shrink(header, *sample, weight.rate, alone);
    sums_live(header, thread, sample, &weight, -1);
}
