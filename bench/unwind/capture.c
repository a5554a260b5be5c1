/* What a capture costs at depths 10, 30 and 60, beside the walk over a copied stack that `attach` makes,
 * frame pointers, libunwind's unw_backtrace and glibc's backtrace, in alternating rounds of one run: the
 * median of the rounds' means, in ns. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../tests/unit/test_unwind.h"
#include "attach/remote/remote.h"
#include "descend.h"

#ifdef HAVE_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#endif

#define ROUNDS 801 /* short ones, so that most are not interrupted */

static uint32_t walked;

static __attribute__((noinline)) void by_rules(void) {
    struct unwind_registers registers;
    uint64_t frames[256];
    bool complete;
    registers_take(&registers);
    walked = unwind_capture(
        &registers, unwind_stack_bounds(registers.sp, &test_low, &test_high), frames, 256, &complete);
}

static struct {
    struct remote *remote;
    struct unwind_registers registers;
    uint8_t stack[64 << 10];
    uint32_t size;
} copied;

/* Copying is the kernel's part and not measured here. */
static __attribute__((noinline)) void copy_stack(void) {
    registers_take(&copied.registers);
    uint64_t size = test_high - copied.registers.sp;
    copied.size = size < sizeof copied.stack ? (uint32_t)size : sizeof copied.stack;
    memcpy(copied.stack, (const void *)copied.registers.sp, copied.size);
}

static __attribute__((noinline)) void by_copy(void) {
    uint64_t frames[256];
    enum remote_end end;
    walked = remote_unwind(copied.remote, &copied.registers, copied.stack, copied.size, frames, 256, &end);
    if (end != REMOTE_COMPLETE) walked = 0;
}

static __attribute__((noinline, optimize("no-omit-frame-pointer"))) void by_frame_pointers(void) {
    uint64_t frames[256], *fp = __builtin_frame_address(0);
    walked = 0;
    while (fp && (uint64_t)fp < test_high && walked < 256) {
        frames[walked++] = fp[1];
        __asm__ volatile("" ::"r"(frames) : "memory");
        if (fp[0] <= (uint64_t)fp) break;
        fp = (uint64_t *)fp[0];
    }
}

static int (*glibc_backtrace)(void **, int); /* libunwind has one of the same name */

static __attribute__((noinline)) void by_backtrace(void) {
    void *frames[256];
    walked = (uint32_t)glibc_backtrace(frames, 256);
}

#ifdef HAVE_LIBUNWIND
static __attribute__((noinline)) void by_libunwind(void) {
    void *frames[256];
    walked = (uint32_t)unw_backtrace(frames, 256);
}
#endif

static const struct way {
    const char *name;
    void (*walk)(void);
    int calls;
} ways[] = {
    {"malloscope", by_rules, 100},
    {"copied stack", by_copy, 100},
    {"frame pointers", by_frame_pointers, 100},
#ifdef HAVE_LIBUNWIND
    {"unw_backtrace", by_libunwind, 100},
#endif
    {"backtrace", by_backtrace, 10},
};
#define WAYS (sizeof ways / sizeof *ways)

static void at_depth(int depth) {
    static double mean[WAYS][ROUNDS];
    uint32_t frames[WAYS];
    copy_stack();
    for (int round = 0; round < ROUNDS; round++)
        for (unsigned way = 0; way < WAYS; way++) {
            double start = now();
            for (int i = 0; i < ways[way].calls; i++) ways[way].walk();
            mean[way][round] = (now() - start) / ways[way].calls;
            frames[way] = walked;
        }
    for (unsigned way = 0; way < WAYS; way++) {
        qsort(mean[way], ROUNDS, sizeof(double), ascending);
        printf("%-16s depth %2d  %3u frames %9.1f ns  (best %.1f)\n", ways[way].name, depth, frames[way],
            mean[way][ROUNDS / 2], mean[way][0]);
    }
}

int main(void) {
    unwind_start(NULL, true);
    *(void **)&glibc_backtrace = dlsym(dlopen("libc.so.6", RTLD_NOW), "backtrace");
    if (remote_open(getpid(), &copied.remote) < 0) return 1;
    by_rules();
    uint32_t here = walked;
    int depths[] = {10, 30, 60};
    for (int i = 0; i < 3; i++) descend(depths[i], depths[i] - (int)here - 1);
    return 0;
}
