/* Forks that run none of the handlers of pthread_atfork: _Fork, clone without CLONE_VM, and fork and clone called
 * by syscall(). Here they do what fork.c's handlers do. Forks that are not seen here (clone3, a system call in
 * assembly) are noticed at the child's first allocation that the recorder is asked about; such a child inherits
 * nothing (fork.c). */
#include "platform/system.h"
#include "record/intercept/export.h"
#include "record/intercept/search_order.h"
#include "record/life/fork.h"
#include "record/life/syscall_result.h"

#include <sched.h>
#include <stdarg.h>
#include <sys/types.h>

EXPORT ANY_STACK pid_t _Fork(void);
EXPORT ANY_STACK int clone(int (*function)(void *), void *stack, int flags, void *argument, ...);
ANY_STACK long bare_forks_system_call(
    long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e);

static struct {
    pid_t (*fork)(void);
    int (*clone)(int (*)(void *), void *, int, void *, ...);
} next;

/* At the start, while there is one thread (search_order.h). */
__attribute__((constructor)) static void find_next(void) {
    *(void **)&next.fork = search_order_next("_Fork");
    *(void **)&next.clone = search_order_next("clone");
}

pid_t _Fork(void) {
    if (!next.fork) find_next();
    fork_before(true);
    pid_t pid = next.fork();
    fork_after_bare(pid == 0);
    return pid;
}

struct function_call {
    int (*function)(void *);
    void *argument;
};

static int call_in_child(void *given) {
    struct function_call call =
        *(struct function_call *)given; /* on the child's copy of the parent's stack */
    fork_child_elsewhere();
    return call.function(call.argument);
}

/* The child runs `function` and never returns here. It has the copy of the live table that fork_before made, and
 * begins its recording at its first allocation that the recorder is asked about. */
int clone(int (*function)(void *), void *stack, int flags, void *argument, ...) {
    va_list given;
    void *more[3];
    va_start(given, argument);
    for (int i = 0; i < 3; i++) more[i] = va_arg(given, void *);
    va_end(given);
    if (!next.clone) find_next();
    /* With CLONE_SETTLS the child would have other thread-local variables, and so no copy. */
    bool forks = !(flags & (CLONE_VM | CLONE_SETTLS));
    if (!forks) return next.clone(function, stack, flags, argument, more[0], more[1], more[2]);
    fork_before(false);
    struct function_call call = {function, argument};
    int pid = next.clone(function ? call_in_child : NULL, stack, flags, &call, more[0], more[1], more[2]);
    fork_after_bare(false);
    return pid;
}

/* The entry code's syscall() jumps here for calls whose child continues on a copy of this stack, and so in this
 * frame. */
long bare_forks_system_call(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e) {
    fork_before(true);
    long pid = system_call_always(number, a, b, c, d, e, 0);
    fork_after_bare(pid == 0);
    return syscall_result(pid);
}
