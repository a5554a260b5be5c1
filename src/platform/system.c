#include "platform/system.h"

#include <signal.h>

_Atomic bool system_calls_are_forbidden;

bool system_on_signal_stack(void) {
    stack_t stack = {.ss_flags = 0};
    return system_call(SYS_sigaltstack, 0, (long)&stack, 0, 0, 0, 0) != 0 || (stack.ss_flags & SS_ONSTACK);
}
