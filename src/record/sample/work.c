#include "record/sample/work.h"

#include "unwind/unwind.h"

__thread struct work *recorder_work;

#define FRAMES 64

/* The registers of this place in the function that it stands in. */
#if defined(__x86_64__)
#define REGISTERS_HERE(registers)                                                                            \
    __asm__ volatile("lea 0f(%%rip), %%rax\n0:\tmov %%rax, 0(%0)\n\tmov %%rsp, 8(%0)\n\tmov %%rbp, 16(%0)\n" \
                     "\tmov %%rbx, 24(%0)\n\tmov %%r12, 32(%0)\n\tmov %%r13, 40(%0)\n\tmov %%r14, 48(%0)\n"  \
                     "\tmov %%r15, 56(%0)\n"                                                                 \
                     :                                                                                       \
                     : "r"(registers)                                                                        \
                     : "rax", "memory")
#else
#define REGISTERS_HERE(registers)                                                                            \
    __asm__ volatile("adr x9, 0f\n0:\tmov x10, sp\n\tstp x9, x10, [%0]\n\tstr x29, [%0, #16]\n"              \
                     :                                                                                       \
                     : "r"(registers)                                                                        \
                     : "x9", "x10", "memory")
#endif

/* Whether the thread is in a signal handler, or may be: its stack cannot be followed to the end. */
static __attribute__((noinline)) bool may_be_in_handler(void) {
    struct unwind_registers here;
    uint64_t frames[FRAMES], low = 0, high = 0;
    bool complete = false, in_handler = false;
    REGISTERS_HERE(&here);
    struct unwind_bounds bounds = unwind_stack_bounds(here.sp, &low, &high);
    unwind_capture_traced(&here, bounds, frames, NULL, FRAMES, &complete, &in_handler, NULL);
    return in_handler || !complete;
}

/* Whether `work` may be further down on the stack than `place`. A handler may run on a stack of its own, which is
 * anywhere. */
static bool is_below(const struct work *work, const void *place) {
    return work && ((uintptr_t)work > (uintptr_t)place || system_on_signal_stack());
}

bool work_is_interrupted(void) {
    if (!is_below(recorder_work, __builtin_frame_address(0))) return false;
    if (may_be_in_handler()) return true;
    recorder_work = NULL;
    return false;
}

bool work_is_nested(void) {
    struct work *work = recorder_work;
    if (!work || !is_below(work->interrupted, work)) return false;
    if (may_be_in_handler()) return true;
    work->interrupted = NULL;
    return false;
}
