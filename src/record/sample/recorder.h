/* The recorder: decides which allocations are sampled, and writes them and their frees into the recording.
 *
 * The files that see an allocation (hooks.c, own_heaps.c, python_objects.c) call it in this order:
 *
 *     recorder_take      charges the thread's countdown: is this allocation to be sampled?
 *     recorder_sample    walks the stack, fills a slot of the live table, adds to the figures
 *     recorder_forget    at the free, before the allocator may give the address out again: empties the slot
 *     recorder_freed     after that: adds to the figures and gives the slot back
 *
 * Recording starts with the first allocation that recorder_take is asked about. recorder_state.h has the stages. */
#ifndef MALLOSCOPE_RECORD_SAMPLE_RECORDER_H
#define MALLOSCOPE_RECORD_SAMPLE_RECORDER_H

#include "core/arena.h"
#include "core/events.h"
#include "core/live_table.h"
#include "record/sample/recorder_state.h"
#include "unwind/unwind.h"

#include <stdbool.h>
#include <stddef.h>

/* ---- the decision ---- */

/* Bytes until the calling thread's next sample; 0: recorder_due is to be asked. The entry code (entry_*.S)
 * charges it. UINT64_MAX: this process will never record, or its interval is just being changed. */
extern __thread uint64_t recorder_countdown;

/* What recorder_take does when the countdown is used up: begins recording, or the thread's record, if that is yet
 * to be done, and draws the next interval. True: the allocation of `size` bytes is to be sampled. */
bool recorder_due(size_t size);

/* Puts right a countdown below zero. The entry code takes the size off the countdown and puts it back on the cold
 * path. A signal handler that interrupts it in between, and allocates, finds the countdown below zero: as an
 * unsigned number, larger than any interval. */
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

/* Counts a sample that was chosen and cannot be recorded. */
void recorder_drop(enum drop kind);

/* Whether the program, and the calling thread's scopes, want allocations to be recorded now. */
bool recorder_is_active(void);
/* Notes a block that was allocated between mscope_ignore_begin and mscope_ignore_end: its free is none of an unknown
 * block. Only exact recordings count these. */
void recorder_note_ignored(const void *block);

/* Makes sure that the calling thread has a record. False: there is no room for one. */
bool recorder_knows_thread(void);

/* In a forked child: draws the calling thread's first interval, so that the child's recording begins with its first
 * sample. In an exact recording, that is the next allocation. */
void recorder_draw_early(void);

/* To be called where recorder_is_recording says no. Starts recording if that was never tried and `may_start` is
 * set; begins the recording of a forked child. Returns whether this process records now. */
bool recorder_begin(bool may_start);

bool recorder_begin_at_once(void);

/* Whether this process records. Recording begins for this, if it was to begin with the next allocation or sample. */
static inline bool recorder_is_ready(void) {
    return recorder_is_recording() || recorder_begin_at_once();
}

/* ---- the sample ---- */

/* Records a block of `size` bytes that the code at `caller` allocated. `heap` is 0 for malloc's blocks, or the
 * number of the heap of an interpreter's objects. The result is to be kept in the block's mark. Its slot is
 * LIVE_NONE if the sample was dropped. */
struct sample recorder_sample(
    const void *block, size_t size, uint32_t heap, const struct unwind_registers *caller);

/* A block that is not live any more, and whose free is not counted yet. */
struct forgotten {
    struct sample sample;
    struct live_entry *entry; /* of its slot */
    uint32_t generation;      /* recorder.generation at the time */
    uint64_t now;
};

/* A free takes two steps. First, while no other thread can get the address: the marked block is taken out of the
 * live table. False: it is not there. */
bool recorder_forget(const void *block, struct forgotten *ret_forgotten);
/* Second, when the allocator has succeeded: the figures learn of the free, and the slot is given back. */
void recorder_freed(const struct forgotten *forgotten);
/* Or, when the allocator has failed (realloc): the block is live again. False: its recording is not there any
 * more. */
bool recorder_restore(const void *block, const struct forgotten *forgotten);
/* Both steps at once, where the allocator cannot fail. */
void recorder_end(const void *block, uint32_t heap);

/* ---- blocks without marks: found by their addresses, in the address index ---- */

enum outcome {
    OUTCOME_DROPPED,
    OUTCOME_RECORDED,
    OUTCOME_REPLACED, /* recorded; a former block at this address, whose free was not seen, is counted as freed */
};
enum outcome recorder_sample_unmarked(const void *block, size_t size, const struct unwind_registers *caller);
bool recorder_forget_unmarked(const void *block, struct forgotten *ret_forgotten);
void recorder_restore_unmarked(const void *block, const struct forgotten *forgotten);

/* Whether sampled blocks are to be marked (mark.h). Known once recording has started. */
bool recorder_uses_marks(void);

/* ---- the steps of a sample, for blocks of the program's own heaps (own_heaps.c) ---- */

/* Fills in time and stack of a sample whose size, heap and count are set. `again`: allocations from this place
 * are frequent, so the walk cache is asked first. False: the sample is dropped. */
bool recorder_capture(const struct unwind_registers *caller, bool again, struct sample *sample);
/* Puts the block into the live table and fills in the sample's slot. False: the sample is dropped. */
bool recorder_insert(const void *block, struct sample *sample);
/* Undoes recorder_insert and counts the sample as dropped: the address index had no room for the block. */
void recorder_take_back(const struct sample *sample);
/* Adds the sample to the figures. */
void recorder_count(const struct sample *sample);

/* Takes the block out of the live table if it is the one in this slot. `heap` is that of the block. */
bool recorder_forget_slot(const void *block, uint32_t slot, uint32_t heap, struct forgotten *ret_forgotten);
/* Counts the block in this slot as freed now: its free was not seen, and its address has been given out again.
 * False: no such block is in the slot. */
bool recorder_end_former(const void *block, uint32_t slot, uint32_t heap, uint64_t now);

/* Writes into the recording's header how much memory the address indices take. */
void recorder_note_private_bytes(void);

#endif
