#include "record/life/exit.h"

#include "platform/system.h"
#include "record/api/scopes.h"
#include "record/intercept/export.h"
#include "record/life/finish.h"
#include "record/life/options.h"
#include "record/life/start.h"
#include "record/sample/recorder_state.h"

#include <unistd.h>

__attribute__((constructor)) static void begin_process(void) {
    if (!options_can_wait())
        start_by_environment();
    else if (atomic_load_explicit(&recorder.stage, memory_order_relaxed) == NOT_STARTED)
        scopes_switch(
            true); /* so that a scope that is entered before the first allocation starts recording */
}
__attribute__((destructor)) static void end_process(void) {
    finish_recording();
}

#ifdef MALLOSCOPE_STATIC
#define _exit __wrap__exit /* real_allocator_static.c */
#define _Exit __wrap__Exit
#endif

/* exit() runs the destructor above. _exit and _Exit do not. */
EXPORT ANY_STACK _Noreturn void _exit(int status);
EXPORT ANY_STACK _Noreturn void _Exit(int status);

void exit_hook(int status) {
    /* A vfork child that has forbidden itself system calls must not finish its parent's recording, and may not
     * ask for its process id to find out that it is the child. The flag is the parent's, too: a parent that ends
     * by _exit after that leaves a recording that is not marked as finished. */
    if (!recorder.is_childs_sandbox) finish_recording();
    for (;;) system_call_always(SYS_exit_group, (uint64_t)status, 0, 0, 0, 0, 0);
}

void _exit(int status) {
    exit_hook(status);
}

void _Exit(int status) {
    exit_hook(status);
}
