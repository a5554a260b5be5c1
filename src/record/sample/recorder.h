/* The recorder in the program: decides which allocations are sampled and puts them into the recording.
 *
 *     NOT_STARTED ──► STARTING ──► RECORDING ──► OFF   (a child that is not followed)
 *                         └───────────────────────┘     (the recording could not be made)
 *
 * It starts with the first allocation that is asked about. In every stage the program's allocations are
 * served. */
#ifndef MALLOSCOPE_RECORD_SAMPLE_RECORDER_H
#define MALLOSCOPE_RECORD_SAMPLE_RECORDER_H

#include "core/arena.h"
#include "core/events.h"
#include "core/live_table.h"
#include "unwind/unwind.h"

#include <stdbool.h>
#include <stddef.h>

/* Bytes until the calling thread's next sample; 0 = ask recorder_due. The entry code charges it. */
extern __thread uint64_t recorder_countdown;

bool recorder_due(size_t size);

/* Whether what is allocated now is to be recorded. */
bool recorder_is_active(void);

/* Makes sure that the calling thread has a record. */
bool recorder_knows_thread(void);

/* Where this process does not record, or not yet: whether it does now. */
bool recorder_begin(bool may_start);

/* The entry code takes the size off and, on its way here, puts it back. A signal handler that allocates in
 * between leaves a countdown below zero: larger than any interval. */
void recorder_mend_countdown(void);

/* Charges the calling thread for `size` bytes. True: this allocation is to be sampled. */
static inline bool recorder_take(size_t size) {
    if (__builtin_expect((int64_t)recorder_countdown < 0, 0)) recorder_mend_countdown();
    if (recorder_countdown > size) {
        recorder_countdown -= size;
        return false;
    }
    return recorder_due(size);
}

/* Undoes the charge for an allocation that recorder_take chose and the allocator then refused. */
void recorder_refund(size_t size);

/* Counts a sample that cannot be recorded. */
void recorder_drop(enum drop kind);

/* Records the block of `size` bytes that was allocated by the code at `caller` in a heap of the recording: 0,
 * malloc's, or that of an interpreter's objects. The result is to be kept in the block's mark; its slot is
 * LIVE_NONE if the sample was dropped. */
struct sample recorder_sample(
    const void *block, size_t size, uint32_t heap, const struct unwind_registers *caller);

/* Frees in two steps: the block is forgotten before the allocator may give it out again, and counted as
 * freed, or restored, when the allocator has done its work. False if it is not known. */
struct forgotten {
    struct sample sample;
    struct live_entry *entry; /* in its slot */
    uint32_t generation;      /* of the recording that it was in */
    uint64_t now;
};

bool recorder_forget(const void *block, struct forgotten *ret_forgotten);
void recorder_freed(const struct forgotten *forgotten);
/* False: there is nothing to restore it in. */
bool recorder_restore(const void *block, const struct forgotten *forgotten);
/* Both steps at once, where nothing comes in between. */
void recorder_end(const void *block, uint32_t heap);

/* The same for blocks that carry no mark: they are found by their address. */
enum outcome {
    OUTCOME_DROPPED,
    OUTCOME_RECORDED,
    OUTCOME_REPLACED, /* and a former block at this address, whose free was not seen, is counted as freed */
};
enum outcome recorder_sample_unmarked(const void *block, size_t size, const struct unwind_registers *caller);
bool recorder_forget_unmarked(const void *block, struct forgotten *ret_forgotten);
void recorder_restore_unmarked(const void *block, const struct forgotten *forgotten);

/* Are sampled blocks marked (mark.h)? Otherwise they stay as the allocator gave them. Known once started. */
bool recorder_uses_marks(void);
/* False if they were not marked anyway. */
bool recorder_stop_marking(void);

/* ---- What a sample is made of (recorder.c). `heap` is its number in the recording. ---- */

/* Fills in time and stack of a sample whose size, heap and count are known. `again`: it may well come from
 * the same place as another of late. False: it is dropped. */
bool recorder_capture(const struct unwind_registers *caller, bool again, struct sample *sample);
/* Puts the block into the live table, and fills in the slot. False: it is dropped. */
bool recorder_insert(const void *block, struct sample *sample);
/* The same undone: there is no way to find it again. */
void recorder_take_back(const struct sample *sample);
/* The figures learn of it. */
void recorder_count(const struct sample *sample);

/* Withdraws the block that should be in this slot, going by its entry. */
bool recorder_forget_slot(const void *block, uint32_t slot, uint32_t heap, struct forgotten *ret_forgotten);
/* The address of a block whose free was not seen is given out again: it counts as freed now. */
bool recorder_end_former(const void *block, uint32_t slot, uint32_t heap, uint64_t now);

/* The header says how much memory the indices take. */
void recorder_note_private_bytes(void);

#endif
