/* A program that gives up its privileges or changes its root may not be able to open the file of its
 * recording afterwards, and so not to let it grow: it gets space ahead. */
#include "platform/caller_state.h"
#include "record/intercept/hooks.h"
#include "record/sample/recorder_state.h"
#include "unwind/unwind.h"

#include <dlfcn.h>
#include <sys/types.h>

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

/* Calls libc's own. What it did not find there the program could not have called. It is looked for at the
 * start, since handlers and children of threads may call these, but not dlsym. */
#define PASS(type, name, parameters, arguments)                                                              \
    EXPORT type name parameters;                                                                             \
    static type(*next_##name) parameters;                                                                    \
    __attribute__((constructor)) static void find_##name(void) {                                             \
        next_##name = (type(*) parameters)dlsym(RTLD_NEXT, #name);                                           \
    }                                                                                                        \
    type name parameters {                                                                                   \
        if (!next_##name) find_##name();                                                                     \
        reserve_space();                                                                                     \
        return next_##name arguments;                                                                        \
    }

PASS(int, setuid, (uid_t user), (user))
PASS(int, seteuid, (uid_t user), (user))
PASS(int, setreuid, (uid_t real, uid_t effective), (real, effective))
PASS(int, setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
PASS(int, chroot, (const char *path), (path))
