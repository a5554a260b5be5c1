/* A program that is about to forbid itself system calls (seccomp) or files (Landlock, another mount namespace,
 * another root).
 *
 * A seccomp filter permits the calls that its author has foreseen, which the recorder's are not: the kernel may
 * kill the program for one of them. So while calls are still permitted, the recording gets space in advance
 * (reserve.h). From then on the recorder makes no system call (platform/system.h), goes on in that space, and
 * drops what does not fit. The strict mode of seccomp forbids even to read the processor's time stamp counter: it
 * ends the recording.
 *
 * Where only files are out of reach, a call of the recorder fails and does no harm. Space in advance is all that
 * is needed. */
#include "platform/system.h"
#include "record/intercept/export.h"
#include "record/life/fork.h"
#include "record/life/reserve.h"
#include "record/life/syscall_result.h"
#include "record/sample/recorder_state.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/prctl.h>

#include "malloscope.h"

ANY_STACK long sandbox_system_call(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e);
EXPORT ANY_STACK int prctl(int option, ...);
EXPORT ANY_STACK int unshare(int flags);
EXPORT ANY_STACK int setns(int namespace, int type);

enum sandbox { NO_SANDBOX, FILE_SANDBOX, FILTER_SANDBOX, STRICT_SANDBOX };

static enum sandbox what_begins(long number, uint64_t a, uint64_t b) {
    bool by_prctl = number == SYS_prctl && a == PR_SET_SECCOMP;
    if (by_prctl && b == SECCOMP_MODE_STRICT) return STRICT_SANDBOX;
    if (number == SYS_seccomp && a == SECCOMP_SET_MODE_STRICT) return STRICT_SANDBOX;
    if (by_prctl || (number == SYS_seccomp && a == SECCOMP_SET_MODE_FILTER)) return FILTER_SANDBOX;
    bool by_files = number == SYS_landlock_restrict_self || number == SYS_pivot_root ||
                    (number == SYS_unshare && a & CLONE_NEWNS) ||
                    (number == SYS_setns && (b == 0 || b & CLONE_NEWNS));
    return by_files ? FILE_SANDBOX : NO_SANDBOX;
}

static void enter(enum sandbox sandbox) {
    if (sandbox == STRICT_SANDBOX)
        mscope_shutdown();
    else
        reserve_space(sandbox != FILE_SANDBOX);
    if (sandbox == FILE_SANDBOX) return;
    /* The strongest order: other threads see the flag before the kernel puts the filter in force. A thread that
     * looked at the flag a moment before may still make its call. */
    atomic_store(&system_calls_are_forbidden, true);
}

long sandbox_system_call(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e) {
    enum sandbox sandbox = what_begins(number, a, b);
    bool was_closed = !system_calls_allowed();
    bool closes = sandbox >= FILTER_SANDBOX && !was_closed;
    if (sandbox != NO_SANDBOX && !was_closed) {
        /* The sandbox of a vfork child binds the child alone: the recorder goes on as before. */
        bool is_childs = fork_shares_memory();
        if (closes) recorder.is_childs_sandbox = is_childs;
        if (!is_childs) enter(sandbox);
    }
    long result = system_call_always(number, a, b, c, d, e, 0);
    /* A positive result of SECCOMP_FILTER_FLAG_TSYNC is the id of a thread that could not take the filter. With
     * SECCOMP_FILTER_FLAG_NEW_LISTENER a positive result is a descriptor: the filter is in force. */
    bool refused =
        result < 0 || (result > 0 && number == SYS_seccomp && !(b & SECCOMP_FILTER_FLAG_NEW_LISTENER));
    if (refused && closes) atomic_store(&system_calls_are_forbidden, false);
    return syscall_result(result);
}

int prctl(int option, ...) {
    va_list given;
    uint64_t argument[4];
    va_start(given, option);
    for (int i = 0; i < 4; i++) argument[i] = va_arg(given, unsigned long);
    va_end(given);
    return (int)sandbox_system_call(
        SYS_prctl, (uint64_t)option, argument[0], argument[1], argument[2], argument[3]);
}

int unshare(int flags) {
    return (int)sandbox_system_call(SYS_unshare, (uint64_t)flags, 0, 0, 0, 0);
}

int setns(int namespace, int type) {
    return (int)sandbox_system_call(SYS_setns, (uint64_t) namespace, (uint64_t)type, 0, 0, 0);
}
