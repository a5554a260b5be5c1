#include "record/life/reserve.h"

#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"
#include "record/sample/work.h"
#include "unwind/unwind.h"

#define RESERVE_SAMPLED (UINT64_C(16) << 20)
#define RESERVE_EXACT   (UINT64_C(64) << 20)
#define RESERVE_STACK   (UINT64_C(256) << 10)
#define RESERVE_BLOCK   64 /* the address index gets room for a block per so many bytes */

/* Stack capture tests each page of a stack by a system call before it reads it, and remembers the result
 * (stack_bounds.c). This has the calling thread's stack tested down to RESERVE_STACK below here, or half of that,
 * and so on: the unused part of a stack may be shorter. */
static void prove_stack(void) {
    uint64_t here = (uintptr_t)__builtin_frame_address(0);
    for (uint64_t below = RESERVE_STACK; below >= PAGE_SIZE_MIN; below /= 2)
        if (unwind_stack_bounds(here - below, &recorder_thread->stack_low, &recorder_thread->stack_high)
                .proven > here)
            return;
}

void reserve_space(bool calls_end) {
    RECORDER_WORKS;
    if (!recorder_is_ready()) return;
    uint64_t space = recorder.exact ? RESERVE_EXACT : RESERVE_SAMPLED;
    if (calls_end)
        arena_reserve(&recorder.recording, space);
    else
        arena_reserve_sparse(&recorder.recording, space);
    address_index_reserve(&recorder.index, space / RESERVE_BLOCK);
    if (recorder_knows_thread()) prove_stack();
}
