/* Signals are held back while the recorder does rare work that a signal handler must not interrupt: a handler may fork,
 * and its child would go on with that work, in a file or a mapping that is its parent's. The signals arrive when the
 * enclosing block ends.
 *
 * Signals that report a fault of the instruction itself are not held back: the kernel ends a process that blocks
 * them. */
#ifndef MALLOSCOPE_PLATFORM_SIGNALS_H
#define MALLOSCOPE_PLATFORM_SIGNALS_H

#include "platform/system.h"

#include <signal.h>

struct held_signals {
    uint64_t former; /* the thread's mask, as the kernel keeps it: signal n is bit n - 1 */
    bool are_held;
};

#define SIGNAL_BIT(number) (UINT64_C(1) << ((number)-1))
#define SIGNALS_OF_FAULTS                                                                                    \
    (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGILL) | SIGNAL_BIT(SIGFPE) |                    \
        SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGSYS))

static inline struct held_signals signals_hold(void) {
    struct held_signals held = {0, false};
    uint64_t all = ~SIGNALS_OF_FAULTS;
    held.are_held = system_call(SYS_rt_sigprocmask, SIG_BLOCK, (uintptr_t)&all, (uintptr_t)&held.former,
                        sizeof all, 0, 0) == 0;
    return held;
}

static inline void signals_release(const struct held_signals *held) {
    if (held->are_held)
        system_call_always(
            SYS_rt_sigprocmask, SIG_SETMASK, (uintptr_t)&held->former, 0, sizeof held->former, 0, 0);
}

/* Holds signals back until the end of the enclosing block. */
#define HOLD_SIGNALS                                                                                         \
    __attribute__((cleanup(signals_release), unused)) const struct held_signals held = signals_hold()

#endif
