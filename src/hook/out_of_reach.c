/* A program that gives up its privileges or changes its root may not be able to open the file of its
 * recording afterwards, and so not to let it grow: it gets space ahead. */
#include "core/unnoticed.h"
#include "hook/hooks.h"
#include "hook/state.h"

#include <dlfcn.h>
#include <sys/types.h>

#define AHEAD_SAMPLED (UINT64_C(16) << 20)
#define AHEAD_EXACT   (UINT64_C(64) << 20)
#define AHEAD_BLOCK   64 /* bytes of the recording for each address that the index has room for */

void recorder_reserve(void) {
    if (!is_recording() && !begin_recording(false)) return;
    UNNOTICED;
    uint64_t ahead = recorder.exact ? AHEAD_EXACT : AHEAD_SAMPLED;
    arena_reserve(&recorder.recording, ahead);
    index_reserve(&recorder.index, ahead / AHEAD_BLOCK);
}

/* Calls libc's own. What it did not find there the program could not have called. */
#define PASS(type, name, parameters, arguments)                                                              \
    EXPORT type name parameters;                                                                             \
    type name parameters {                                                                                   \
        static type(*_Atomic next) parameters;                                                               \
        if (!next) next = (type(*) parameters)dlsym(RTLD_NEXT, #name);                                       \
        recorder_reserve();                                                                                  \
        return next arguments;                                                                               \
    }

PASS(int, setuid, (uid_t user), (user))
PASS(int, seteuid, (uid_t user), (user))
PASS(int, setreuid, (uid_t real, uid_t effective), (real, effective))
PASS(int, setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
PASS(int, chroot, (const char *path), (path))
