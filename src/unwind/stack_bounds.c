/* Which memory is the stack that a thread runs on.
 *
 * The upper end of a thread's own stack is known. glibc and musl place the thread's control block, to which the
 * thread pointer points, at the upper end of the stack, also when the program supplied the memory. The main
 * thread's stack ends below the random bytes of AT_RANDOM, which the kernel places above its first frame. If
 * everything from sp up to the nearer of these two can be read, the thread runs on that stack. It exists for as
 * long as the thread does, so the range is remembered.
 *
 * Otherwise sp is on an alternate signal stack or on a coroutine's stack. These come and go, so nothing is
 * remembered, and each page is tried when the stack walk comes to it. */
#include <sys/auxv.h>

#include "platform/safe_read.h"
#include "platform/system.h"
#include "unwind/unwind.h"

#define STACK_SIZE_MAX (UINT64_C(4) << 30)
#define PAGES_TRIED_AT_ONCE                                                                                  \
    64 /* a deep stack is tried over several captures, so that none of them takes long */

static uint64_t page_of(uint64_t address) {
    return address & ~(PAGE_SIZE_MIN - 1);
}

static bool within(uint64_t sp, uint64_t top) {
    return sp < top && top - sp <= STACK_SIZE_MAX;
}

static bool main_thread(void) {
    return system_call(SYS_getpid, 0, 0, 0, 0, 0, 0) == system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

static __attribute__((noinline)) struct unwind_bounds bounds_prove(
    uint64_t sp, uint64_t *cached_low, uint64_t *cached_high) {
    struct unwind_bounds foreign = {.low = sp, .high = sp + UNWIND_FOREIGN_STACK, .proven = sp};
    if (foreign.high < sp) return (struct unwind_bounds){0};

    uint64_t thread_top = thread_pointer() & ~UINT64_C(7);
    uint64_t main_top = (uint64_t)getauxval(AT_RANDOM) & ~UINT64_C(7);
    bool on_thread = within(sp, thread_top) && !(within(sp, main_top) && main_top < thread_top);
    if (!on_thread && !within(sp, main_top)) return foreign;
    /* The main thread's control block is not on its stack. So what lies below it is other memory, which may be
     * unmapped. */
    if (on_thread && main_thread()) return foreign;

    uint64_t top = on_thread ? thread_top : main_top;
    uint64_t low = *cached_high == top ? *cached_low : page_of(top) + PAGE_SIZE_MIN;
    for (int tried = 0; low > sp && tried < PAGES_TRIED_AT_ONCE; tried++) {
        if (!safe_read_possible(low - PAGE_SIZE_MIN)) return foreign;
        low -= PAGE_SIZE_MIN;
    }
    /* In this order, so that a signal handler that comes in between finds an empty range or the old one. */
    if (*cached_high != top) *(volatile uint64_t *)cached_high = 0;
    *(volatile uint64_t *)cached_low = low;
    *(volatile uint64_t *)cached_high = top;
    return (struct unwind_bounds){.low = sp, .high = top, .proven = low <= sp ? top : sp};
}

struct unwind_bounds unwind_stack_bounds(uint64_t sp, uint64_t *cached_low, uint64_t *cached_high) {
    if (sp >= *cached_low && sp < *cached_high)
        return (struct unwind_bounds){.low = sp, .high = *cached_high, .proven = *cached_high};
    return bounds_prove(sp, cached_low, cached_high);
}
