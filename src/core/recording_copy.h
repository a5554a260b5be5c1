/* A consistent copy of a recording whose program goes on writing it.
 *
 * Two readers make such a copy: the tool, from outside, through a shared mapping (model/snapshot_take.c), and the
 * recorder itself, when it dumps (record/dump/dump_recording.c). Neither stops the writers. What makes the
 * copies sound is the order of the loads, so the steps that depend on it are here, once.
 *
 * Order of the parts. A writer makes things in this order, and publishes each step with a release:
 *
 *     frames and text  ─►  the record that points to them (stack, module, name)  ─►  the live entry that
 *                                                                                    names the stack
 *
 * A reader copies in the reverse order: the live table first, then the other tables, then the plain rest of
 * the arena. So whatever one copied part refers to is in a part that is copied later, and is there.
 *
 * Order within a part. Entries that change are copied word by word, each word with an acquire load, in rising
 * order: no word is read before its predecessor. A copy by memcpy or read(2) would promise nothing about the
 * order in which bytes move. An entry is whole if the word that tells its version is equal before and after
 * the copy. For a live entry this looks as follows:
 *
 *     writer   key := 0       │ entry := ...          │ key := address and birth
 *     reader             read key ── copy the entry ── read key again: equal? then the copy is whole
 *
 * The words that tell the version:
 *
 *     live entry      key: 0 while the slot is free or being filled (live_table_copy in core/live_table.h)
 *     stack record    peak_epoch, for the figures that are saved at the peak
 *     thread record   all fields that the thread's next draw changes
 *     timeline        sequence: odd while buckets are merged */
#ifndef MALLOSCOPE_CORE_RECORDING_COPY_H
#define MALLOSCOPE_CORE_RECORDING_COPY_H

#include "core/recording.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How often an entry that changes during its copy is copied again. */
#define RECORDING_COPY_TRIES 32

/* Copies `size` bytes, a multiple of 8, as said above. Words of `to` that are equal already are not written, so
 * that pages of a new mapping which stay zero stay without memory. Returns whether any word is not zero. */
static inline bool recording_copy_words(void *to, const void *from, size_t size) {
    uint64_t *target = to, any = 0;
    for (size_t i = 0; i < size / sizeof *target; i++) {
        uint64_t word = __atomic_load_n((const uint64_t *)from + i, __ATOMIC_ACQUIRE);
        if (target[i] != word) target[i] = word;
        any |= word;
    }
    return any != 0;
}

/* Copies the record of a stack; the result is as that of recording_copy_words. tests/models/live_table.pml
 * has every step of this: change both.
 *
 * Freed ≤ allocated holds in the copy: the words that count allocations are copied once more after all
 * others, so they are newer than those that count frees, and a block's allocation is counted before its free
 * (events.c). The saved figures of the peak belong to one peak_epoch: if it changed meanwhile, the record is
 * copied again. After `tries` copies the last one has to do. */
static inline bool recording_copy_stack(struct stack_record *to, const struct stack_record *from, int tries) {
    const size_t counts = offsetof(struct stack_record, alloc_objects);
    const size_t counts_size = offsetof(struct stack_record, peak_bytes) - counts;
    bool any = false;
    for (int attempt = 0; attempt < tries; attempt++) {
        uint64_t epoch = atomic_load_explicit(&from->peak_epoch, memory_order_acquire);
        any |= recording_copy_words(to, from, sizeof *to);
        any |= recording_copy_words((char *)to + counts, (const char *)from + counts, counts_size);
        /* Relaxed: the acquire loads of the copy keep this load behind them. */
        if (to->peak_epoch == epoch && atomic_load_explicit(&from->peak_epoch, memory_order_relaxed) == epoch)
            break;
    }
    return any;
}

/* thread_record.bytes counts up to the thread's last draw. Since then a running thread has allocated
 *
 *     interval − countdown
 *
 * where the countdown is read from the thread's own memory, at countdown_address. `before` is a copy of the
 * record from before the countdown was read, `to` one from after (the caller puts an acquire fence between the
 * reading of the countdown and the second copy). Adds the difference to `to`. False: the thread drew, ended or
 * was between two stores meanwhile, so the countdown may not belong to the record: copy and read again. */
static inline bool recording_copy_add_countdown(
    struct thread_record *to, const struct thread_record *before, uint64_t countdown) {
    bool is_unchanged = to->state == before->state && to->tid == before->tid && to->bytes == before->bytes &&
                        to->interval == before->interval &&
                        to->countdown_address == before->countdown_address;
    /* While the recorder changes record and countdown, the countdown is larger than any interval. */
    if (!is_unchanged || countdown > to->interval) return false;
    to->bytes += to->interval - countdown;
    to->interval = 0;
    return true;
}

/* Copies the timeline once. False: its buckets were being merged. */
static inline bool recording_copy_timeline(struct timeline *to, const struct timeline *from) {
    uint64_t sequence = atomic_load_explicit(&from->sequence, memory_order_acquire);
    recording_copy_words(to, from, sizeof *to);
    /* Relaxed: as above. */
    return sequence % 2 == 0 && atomic_load_explicit(&from->sequence, memory_order_relaxed) == sequence;
}

#endif
