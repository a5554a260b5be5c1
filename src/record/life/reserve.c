#include "record/life/reserve.h"

#include "platform/caller_state.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"
#include "unwind/unwind.h"

#define RESERVE_SAMPLED (UINT64_C(16) << 20)
#define RESERVE_EXACT   (UINT64_C(64) << 20)
#define RESERVE_STACK   (UINT64_C(256) << 10)
#define RESERVE_BLOCK   64 /* bytes of the recording for each address that the index has room for */

/* The stack of this thread, as far down as it may come to be used. */
static void prove_stack(void) {
    uint64_t here = (uintptr_t)__builtin_frame_address(0);
    for (uint64_t ahead = RESERVE_STACK; ahead >= 4096; ahead /= 2)
        if (unwind_stack_bounds(here - ahead, &recorder_thread->stack_low, &recorder_thread->stack_high)
                .proven > here)
            return;
}

void reserve_space(void) {
    if (!recorder_is_recording() && !recorder_begin(false)) return;
    KEEP_CALLER_STATE;
    uint64_t ahead = recorder.exact ? RESERVE_EXACT : RESERVE_SAMPLED;
    arena_reserve(&recorder.recording, ahead);
    address_index_reserve(&recorder.index, ahead / RESERVE_BLOCK);
    if (recorder_knows_thread()) prove_stack();
}
