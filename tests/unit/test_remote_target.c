/* A program that stands still in one situation after another, for test_remote_walk. Built in several ways.
 * Arguments: libraries to open. */
#include "test_remote.h"

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define KEEP_FRAME __asm__ volatile("" ::: "memory")

static volatile int sink;

static void say_and_wait(const struct moment *moment) {
    char answer;
    if (write(STDOUT_FILENO, moment, sizeof *moment) != (ssize_t)sizeof *moment) _exit(1);
    if (read(STDIN_FILENO, &answer, 1) != 1) _exit(1);
}

/* Frames from here on are on the stack that `sp` is on, up to the first that is not. */
static __attribute__((noinline)) void stand(const char *label, uint32_t other_stack) {
    static struct moment moment;
    struct reference reference = {.count = 0};
    memset(&moment, 0, sizeof moment);
    strncpy(moment.label, label, sizeof moment.label - 1);
    registers_take(&moment.registers);
    _Unwind_Backtrace(reference_add, &reference);
    if (in_coroutine && reference.count) reference.frames[reference.count - 1]++;
    moment.other_stack = other_stack;
    moment.count = reference.count;
    memcpy(moment.frames, reference.frames, sizeof moment.frames);
    say_and_wait(&moment);
    KEEP_FRAME;
}

static __attribute__((noinline)) void recursion(int depth, const char *label) {
    char room[40];
    memset(room, depth, sizeof room);
    if (depth == 0)
        stand(label, 0);
    else
        recursion(depth - 1, label);
    sink += room[depth % 40];
}

static __attribute__((noinline)) void variable_frame(int size) {
    char *room = alloca((size_t)size);
    memset(room, 1, (size_t)size);
    stand("alloca", 0);
    sink += room[size / 2];
}

static __attribute__((noinline)) void realigned_frame(int size) {
    _Alignas(64) char aligned[128];
    char room[size];
    memset(aligned, 1, sizeof aligned);
    memset(room, 1, (size_t)size);
    recursion(3, "realigned");
    sink += aligned[size % 128] + room[size / 2];
}

static __attribute__((noinline)) void large_frame(int at) {
    char room[300000];
    memset(room, at, sizeof room);
    stand("large frame", 0);
    sink += room[at];
}

/* Functions that find their frames from other registers than the usual ones, as some assembly does, and
 * between them others that use all registers for something else. */
#define FRAME_FROM(name)                                                                                     \
    void frame_from_##name(void (*callback)(void));                                                          \
    __asm__(".pushsection .text\n"                                                                           \
            ".globl frame_from_" #name "\n"                                                                  \
            ".type frame_from_" #name ", @function\n"                                                        \
            "frame_from_" #name ":\n"                                                                        \
            "    .cfi_startproc\n"                                                                           \
            "    push %" #name "\n"                                                                          \
            "    .cfi_def_cfa_offset 16\n"                                                                   \
            "    .cfi_offset %" #name ", -16\n"                                                              \
            "    mov %rsp, %" #name "\n"                                                                     \
            "    .cfi_def_cfa_register %" #name "\n"                                                         \
            "    sub $72, %rsp\n"                                                                            \
            "    and $-64, %rsp\n"                                                                           \
            "    call *%rdi\n"                                                                               \
            "    mov %" #name ", %rsp\n"                                                                     \
            "    .cfi_def_cfa_register %rsp\n"                                                               \
            "    pop %" #name "\n"                                                                           \
            "    .cfi_def_cfa_offset 8\n"                                                                    \
            "    ret\n"                                                                                      \
            "    .cfi_endproc\n"                                                                             \
            ".popsection\n")

FRAME_FROM(rbx);
FRAME_FROM(r12);
FRAME_FROM(r13);
FRAME_FROM(r14);
FRAME_FROM(r15);

static __attribute__((noinline)) void next_frame(void) {
    static void (*const functions[])(void (*)(void)) = {
        frame_from_rbx, frame_from_r12, frame_from_r13, frame_from_r14, frame_from_r15};
    static unsigned next;
    __asm__ volatile("xor %%ebx, %%ebx\n xor %%r12d, %%r12d\n xor %%r13d, %%r13d\n"
                     "xor %%r14d, %%r14d\n xor %%r15d, %%r15d" ::
                         : "rbx", "r12", "r13", "r14", "r15", "cc");
    if (next < 5)
        functions[next++](next_frame);
    else
        stand("registers", 0);
    KEEP_FRAME;
}

static const char *callback_label;

static int compare_once(const void *a, const void *b) {
    if (callback_label) recursion(2, callback_label);
    callback_label = NULL;
    return *(const int *)a - *(const int *)b;
}

static void callbacks(void) {
    int numbers[100];
    void *tree = NULL;
    for (int i = 0; i < 100; i++) numbers[i] = i * 7919 % 100;
    callback_label = "qsort";
    qsort(numbers, 100, sizeof *numbers, compare_once);
    tsearch(&numbers[0], &tree, compare_once);
    callback_label = "tsearch";
    tsearch(&numbers[1], &tree, compare_once);
}

static void *on_thread(void *argument) {
    recursion(20, "thread");
    KEEP_FRAME;
    return argument;
}

static uint32_t frames_on_alternate_stack;

static void on_signal(int number) {
    (void)number;
    stand("signal", frames_on_alternate_stack);
    KEEP_FRAME;
}

/* At an instruction that is no call, in a function whose frame is not where a call would leave it. */
static __attribute__((noinline)) void fault(int depth) {
    char room[24];
    memset(room, depth, sizeof room);
    if (depth > 0)
        fault(depth - 1);
    else
        __asm__ volatile("ud2");
    sink += room[3];
}

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)info;
    on_signal(number);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

static __attribute__((noinline)) void signals(int flags) {
    struct sigaction plain = {.sa_handler = on_signal, .sa_flags = flags};
    struct sigaction with_context = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | flags};
    sigaction(SIGUSR1, &plain, NULL);
    sigaction(SIGILL, &with_context, NULL);
    /* stand, handler, trampoline, and what was interrupted, whose pc the trampoline's frame tells */
    frames_on_alternate_stack = flags & SA_ONSTACK ? 4 : 0;
    raise(SIGUSR1);
    /* with the function that on_fault calls, unless it was inlined */
    if (!(flags & SA_ONSTACK)) fault(3);
    KEEP_FRAME;
}

static ucontext_t main_context, other_context;

static void on_other_context(void) {
    in_coroutine = true;
    recursion(5, "coroutine");
    in_coroutine = false;
    swapcontext(&other_context, &main_context);
}

static void coroutine(void) {
    static char stack[64 * 1024] __attribute__((aligned(16)));
    getcontext(&other_context);
    other_context.uc_stack.ss_sp = stack;
    other_context.uc_stack.ss_size = sizeof stack;
    other_context.uc_link = &main_context;
    makecontext(&other_context, on_other_context, 0);
    swapcontext(&main_context, &other_context);
}

static int from_library(void *label) {
    recursion(1, label);
    return 0;
}

#ifndef STATIC
/* libgcc does not come out of generated code. */
static __attribute__((noinline)) void from_generated_code(void) {
    static struct moment moment = {.label = "generated code"};
    bool complete;
    registers_take(&moment.registers);
    moment.count =
        unwind_capture(&moment.registers, unwind_stack_bounds(moment.registers.sp, &test_low, &test_high),
            moment.frames, TEST_FRAMES, &complete);
    if (!complete) _exit(4);
    say_and_wait(&moment);
    KEEP_FRAME;
}

static void generated_code(void) {
    static const uint8_t code[] = {
        0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d,
        0xc3, /* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
        0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08,
        0xc3, /* sub $8,%rsp; call; add $8,%rsp; ret */
    };
    uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    ((void (*)(void (*)(void)))page)(from_generated_code);
    ((void (*)(void (*)(void)))(page + 8))(from_generated_code);
    KEEP_FRAME;
}

static void libraries(char **paths) {
    for (; *paths; paths++) {
        void *library = dlopen(*paths, RTLD_NOW);
        int (*call)(int (*)(void *), void *, int) = library ? dlsym(library, "library_call") : NULL;
        if (!call) _exit(2);
        sink += call(from_library, "library", 3);
        dlclose(library); /* the next one may take its place */
    }
}
#else
static void generated_code(void) {}

static void libraries(char **paths) {
    (void)paths, (void)from_library;
}
#endif

static __attribute__((constructor)) void before_main(void) {
    struct moment moment = {.label = "constructor"};
    registers_take(&moment.registers);
    say_and_wait(&moment);
    KEEP_FRAME;
}

int main(int count, char **arguments) {
    static char alternate[64 * 1024];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, NULL);
    (void)count;

    stand("main", 0);
    recursion(100, "recursion");
    for (int size = 1; size < 9000; size = size * 3 + 1) {
        variable_frame(size);
        realigned_frame(size);
    }
    large_frame(12345);
    next_frame();
    callbacks();
    pthread_t thread;
    pthread_create(&thread, NULL, on_thread, NULL);
    pthread_join(thread, NULL);
    signals(0);
    signals(SA_SIGINFO);
    signals(SA_ONSTACK);
    coroutine();
    generated_code();
    libraries(arguments + 1);
    return 0;
}
