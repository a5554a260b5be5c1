/* The walk finds the frames that libgcc finds. This file is compiled with different options. */
#include "check.h"
#include "test_unwind.h"

#include <alloca.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int sink;

#define KEEP_FRAME __asm__ volatile("" ::: "memory")

/* Functions that every_instruction is about. */
#define STEPPED __attribute__((noinline, section("stepped_code")))

static STEPPED bool recursion(int depth) {
    char room[40];
    memset(room, depth, sizeof room);
    bool same = depth == 0 ? stack_agrees() : recursion(depth - 1);
    sink += room[depth % 40];
    return same;
}

static STEPPED bool variable_frame(int size) {
    char *room = (char *)alloca((size_t)size);
    memset(room, 1, (size_t)size);
    bool same = stack_agrees();
    sink += room[size / 2];
    return same;
}

static STEPPED bool realigned_frame(int size) {
    _Alignas(64) char aligned[128];
    char room[size];
    memset(aligned, 1, sizeof aligned);
    memset(room, 1, (size_t)size);
    bool same = recursion(3);
    sink += aligned[size % 128] + room[size / 2];
    return same;
}

static STEPPED bool large_frame(int at) {
    char room[300000];
    memset(room, at, sizeof room);
    bool same = stack_agrees();
    sink += room[at];
    return same;
}

static STEPPED bool many_arguments(
    long a, long b, long c, long d, long e, long f, long g, long h, double x, double y) {
    bool same = stack_agrees();
    sink += (int)(a + b + c + d + e + f + g + h + (long)(x * y));
    return same;
}

/* Volatile: raise is declared in a way that lets the compiler take it for granted that no handler runs. */
static volatile bool callback_same = true;

static STEPPED int compare_numbers(const void *a, const void *b) {
    callback_same &= stack_agrees();
    return *(const int *)a - *(const int *)b;
}

static void use_all_frames(void) {
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
}

static void *on_thread(void *argument) {
    (void)argument;
    uint64_t low = 0, high = 0;
    bool same = same_as_libgcc(true, &low, &high);
    CHECK(high != 0); /* recognised as the thread's own stack */
    CHECK(low <= (uint64_t)__builtin_frame_address(0));
    KEEP_FRAME;
    return (void *)(uintptr_t)same;
}

static void handler(int number) {
    (void)number;
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

/* A function that has no frame faults: on aarch64 its return address is in a register. */
static char *guarded;

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    (void)context;
    callback_same &= stack_agrees();
    mprotect(guarded, 1, PROT_READ);
}

static __attribute__((noinline)) int leaf_function(const volatile char *address) {
    return *address + 1;
}

static void faults(int flags) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | flags};
    sigaction(SIGSEGV, &action, NULL);
    uint64_t before = compared_stacks;
    callback_same = true;
    guarded = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sink += leaf_function(guarded);
    CHECK(callback_same);
    CHECK(compared_stacks == before + 1);
}

#if defined(__aarch64__)
#pragma GCC push_options
#pragma GCC target("+sve")
#include <arm_sve.h>

/* How large the frame is depends on the processor: it holds a vector. */
static __attribute__((noinline)) bool vector_frame(const int *numbers) {
    svint32_t vector = svld1_s32(svptrue_b32(), numbers);
    bool same = stack_agrees();
    sink += svaddv_s32(svptrue_b32(), vector);
    return same;
}
#pragma GCC pop_options

/* Return addresses on the stack carry a signature: without that, the walks here would prove less. */
static __attribute__((noinline)) bool signed_in(int depth) {
    uint64_t link = ((uint64_t *)__builtin_frame_address(0))[1];
    bool here = link >> 48 != 0, above = depth > 0 && signed_in(depth - 1); /* it may be 0 by chance */
    KEEP_FRAME;
    return here || above;
}
#endif

/* ---- Every instruction, in prologues and epilogues as well as anywhere else, is once where a signal came
 * ---- */

static STEPPED int stepped(int depth) {
    _Alignas(32) char room[64];
    memset(room, depth, sizeof room);
    if (depth > 0) return stepped(depth - 1) + room[3];
    int numbers[] = {4, 1, 3};
    char text[32];
    snprintf(text, sizeof text, "%d %s", depth, "x");
    free(malloc(100));
    return numbers[1] + (int)strlen(text) + atoi("12");
}

#if defined(__x86_64__)

/* The processor traps after every instruction, in linkage tables too. */
static void on_trap(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    callback_same &= stack_agrees();
    if (!callback_same) ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100ll;
}

static __attribute__((noinline)) void every_instruction(void) {
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

#else

/* Each instruction of some functions is replaced by a breakpoint. One that is hit is replaced by its instruction. */
static struct breakpoints { uint32_t *begin, *end, instructions[4096]; } breakpoints[8];

static void on_trap(int number, siginfo_t *info, void *context) {
    uint32_t *at = (uint32_t *)((ucontext_t *)context)->uc_mcontext.pc;
    for (struct breakpoints *set = breakpoints; set < breakpoints + 8; set++)
        if (set->begin <= at && at < set->end) *at = set->instructions[at - set->begin];
    __builtin___clear_cache((char *)at, (char *)(at + 1));
    callback_same &= stack_agrees();
}

static void change_code(struct breakpoints *set, int protection) {
    uint64_t page = getauxval(AT_PAGESZ), first = (uint64_t)set->begin & -page;
    CHECK(mprotect((void *)first, (uint64_t)set->end - first, protection) == 0);
}

static void set_breakpoints(struct breakpoints *set, uint32_t *begin, uint32_t *end) {
    enum { BREAK = 0xd4200000u };
    if (!CHECK(end - begin <= 4096)) return;
    set->begin = begin;
    set->end = end;
    memcpy(set->instructions, begin, (uint64_t)end - (uint64_t)begin);
    change_code(set, PROT_READ | PROT_WRITE | PROT_EXEC);
    for (uint32_t *at = begin; at < end; at++) *at = BREAK;
    __builtin___clear_cache((char *)begin, (char *)end);
}

static void clear_breakpoints(struct breakpoints *set) {
    change_code(set, PROT_READ | PROT_WRITE | PROT_EXEC); /* as it is, unless another set shares the page */
    memcpy(set->begin, set->instructions, (uint64_t)set->end - (uint64_t)set->begin);
    __builtin___clear_cache((char *)set->begin, (char *)set->end);
    change_code(set, PROT_READ | PROT_EXEC);
}

extern uint32_t __start_stepped_code[], __stop_stepped_code[];

static __attribute__((noinline)) void every_instruction(void) {
    static const char *const in_libc[] = {"malloc", "free", "snprintf", "qsort", "tsearch", "strtol"};
    enum { SETS = 1 + sizeof in_libc / sizeof *in_libc };
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    callback_same = true;
    uint64_t before = compared_stacks;
    set_breakpoints(&breakpoints[0], __start_stepped_code, __stop_stepped_code);
    for (int i = 1; i < SETS; i++) {
        Dl_info info;
        ElfW(Sym) * symbol;
        void *function = dlsym(RTLD_DEFAULT, in_libc[i - 1]);
        if (CHECK(dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT)))
            set_breakpoints(&breakpoints[i], function, (uint32_t *)((char *)function + symbol->st_size));
    }
    sink += stepped(2);
    use_all_frames();
    for (int i = 0; i < SETS; i++) clear_breakpoints(&breakpoints[i]);
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
    use_all_frames();

    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, on_thread, NULL);
    pthread_join(thread, &result);
    CHECK(result != NULL);

    signals(0);
    signals(SA_SIGINFO);
    signals(SA_ONSTACK);
    faults(0);
    faults(SA_ONSTACK);
    coroutine();
    every_instruction();
#if defined(__aarch64__)
    if (getauxval(AT_HWCAP) & HWCAP_SVE) CHECK(vector_frame((int[64]){1, 2, 3}));
    if (getauxval(AT_HWCAP) & HWCAP_PACA) CHECK(signed_in(30));
#endif
    fprintf(stderr, "%lu stacks, %lu frames compared\n", (unsigned long)compared_stacks,
        (unsigned long)compared_frames);
    return check_result();
}
