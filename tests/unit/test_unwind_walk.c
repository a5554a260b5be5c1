/* The walk is the same as libgcc's, whatever the code was compiled like: this file is built several times. */
#include "check.h"
#include "test_unwind.h"

#include <alloca.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int sink;

#define KEEP_FRAME __asm__ volatile("" ::: "memory")

static __attribute__((noinline)) bool recursion(int depth) {
    char room[40];
    memset(room, depth, sizeof room);
    bool same = depth == 0 ? stack_agrees() : recursion(depth - 1);
    sink += room[depth % 40];
    return same;
}

static __attribute__((noinline)) bool variable_frame(int size) {
    char *room = (char *)alloca((size_t)size);
    memset(room, 1, (size_t)size);
    bool same = stack_agrees();
    sink += room[size / 2];
    return same;
}

static __attribute__((noinline)) bool realigned_frame(int size) {
    _Alignas(64) char aligned[128];
    char room[size];
    memset(aligned, 1, sizeof aligned);
    memset(room, 1, (size_t)size);
    bool same = recursion(3);
    sink += aligned[size % 128] + room[size / 2];
    return same;
}

static __attribute__((noinline)) bool large_frame(int at) {
    char room[300000];
    memset(room, at, sizeof room);
    bool same = stack_agrees();
    sink += room[at];
    return same;
}

static __attribute__((noinline)) bool many_arguments(
    long a, long b, long c, long d, long e, long f, long g, long h, double x, double y) {
    bool same = stack_agrees();
    sink += (int)(a + b + c + d + e + f + g + h + (long)(x * y));
    return same;
}

static bool callback_same = true;

static int compare_numbers(const void *a, const void *b) {
    callback_same &= stack_agrees();
    return *(const int *)a - *(const int *)b;
}

static void *on_thread(void *argument) {
    uint64_t low = 0, high = 0;
    bool same = same_as_libgcc(true, &low, &high);
    CHECK(high != 0); /* recognised as the thread's own stack */
    CHECK(low <= (uint64_t)__builtin_frame_address(0));
    KEEP_FRAME;
    return (void *)(uintptr_t)same;
}

static void handler(int number) {
    callback_same &= stack_agrees();
    KEEP_FRAME;
}

static __attribute__((noinline)) void raise_signal(void) {
    raise(SIGUSR1);
    KEEP_FRAME;
}

static void signals(int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(SIGUSR1, &action, NULL);
    callback_same = true;
    raise_signal();
    CHECK(callback_same);
}

static ucontext_t main_context, other_context;

static void on_other_context(void) {
    in_coroutine = true;
    callback_same &= recursion(5);
    in_coroutine = false;
    swapcontext(&other_context, &main_context);
}

static void coroutine(void) {
    static char stack[64 * 1024] __attribute__((aligned(16)));
    callback_same = true;
    getcontext(&other_context);
    other_context.uc_stack.ss_sp = stack;
    other_context.uc_stack.ss_size = sizeof stack;
    other_context.uc_link = &main_context;
    makecontext(&other_context, on_other_context, 0);
    swapcontext(&main_context, &other_context);
    CHECK(callback_same);
}

#if defined(__x86_64__)
/* The processor traps after every instruction: each one, in prologues, epilogues and linkage tables as well
 * as anywhere else, is once where a signal came. */
static void on_trap(int number, siginfo_t *info, void *context) {
    callback_same &= stack_agrees();
    if (!callback_same) ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100ll;
}

static __attribute__((noinline)) int stepped(int depth) {
    _Alignas(32) char room[64];
    memset(room, depth, sizeof room);
    if (depth > 0) return stepped(depth - 1) + room[3];
    int numbers[] = {4, 1, 3};
    char text[32];
    snprintf(text, sizeof text, "%d %s", depth, "x");
    free(malloc(100));
    return numbers[1] + (int)strlen(text) + atoi("12");
}

static __attribute__((noinline)) void single_step(void) {
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    callback_same = true;
    uint64_t before = compared_stacks;
    __asm__ volatile(
        "lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
            : "cc", "memory");
    sink += stepped(2);
    __asm__ volatile(
        "lea -128(%%rsp), %%rsp\n pushfq\n andq $~0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
            : "cc", "memory");
    CHECK(callback_same);
    CHECK(compared_stacks - before > 500);
}
#endif

static __attribute__((constructor)) void before_main(void) {
    /* libgcc does not know where the loader begins; that the walk gets to an end is what counts. */
    uint64_t frames[64], low = 0, high = 0;
    struct unwind_registers registers;
    bool complete;
    registers_take(&registers);
    uint32_t count =
        unwind_capture(&registers, unwind_stack_bounds(registers.sp, &low, &high), frames, 64, &complete);
    CHECK(complete);
    CHECK(count >= 3);
}

int main(void) {
    static char alternate[64 * 1024];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, NULL);

    CHECK(stack_agrees());
    CHECK(test_high != 0);
    CHECK(recursion(0));
    CHECK(recursion(100));
    for (int size = 1; size < 9000; size = size * 3 + 1) {
        CHECK(variable_frame(size));
        CHECK(realigned_frame(size));
    }
    CHECK(large_frame(12345));
    CHECK(many_arguments(1, 2, 3, 4, 5, 6, 7, 8, 1.5, 2));

    int numbers[100];
    for (int i = 0; i < 100; i++) numbers[i] = i * 7919 % 100;
    qsort(numbers, 100, sizeof *numbers, compare_numbers);
    void *tree = NULL;
    for (int i = 0; i < 20; i++) tsearch(&numbers[i], &tree, compare_numbers);
    CHECK(callback_same);

    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, on_thread, NULL);
    pthread_join(thread, &result);
    CHECK(result != NULL);

    signals(0);
    signals(SA_SIGINFO);
    signals(SA_ONSTACK);
    coroutine();
#if defined(__x86_64__)
    single_step();
#endif
    fprintf(stderr, "%lu stacks, %lu frames compared\n", (unsigned long)compared_stacks,
        (unsigned long)compared_frames);
    return check_result();
}
