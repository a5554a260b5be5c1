/* stacks ROUNDS: allocates from every shape of stack that C can make: recursion, frames of variable size and
 * alignment, callbacks from libc, calls that never return, threads, signal handlers on the same and on
 * another stack, coroutines, and what runs before and after main. Prints how often it allocated. */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <search.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static _Atomic long allocations;
static void *volatile escaped;
static volatile int sink;

/* Keeps a call from becoming a jump. */
#define KEEP_FRAME __asm__ volatile("" ::: "memory")

static __attribute__((noinline)) void allocate(void) {
    void *block = malloc(40 + (size_t)(allocations++ % 7) * 24);
    escaped = block;
    free(block);
}

/* ---- Frames ---- */

static __attribute__((noinline)) void recursion(int depth) {
    char room[40];
    memset(room, depth, sizeof room);
    if (depth > 0)
        recursion(depth - 1);
    else
        allocate();
    sink += room[depth % 40];
}

static __attribute__((noinline)) void variable_frame(int size) {
    char *room = alloca((size_t)size);
    memset(room, 1, (size_t)size);
    allocate();
    sink += room[size / 2];
}

static __attribute__((noinline)) void realigned_frame(int size) {
    _Alignas(64) char aligned[128];
    char room[size];
    memset(aligned, 1, sizeof aligned);
    memset(room, 1, (size_t)size);
    recursion(3);
    sink += aligned[size % 128] + room[size / 2];
}

static __attribute__((noinline)) void *tail_call(size_t size) {
    allocations++;
    return calloc(1, size);
}

/* The address that the call would return to is already another function's. */
static jmp_buf way_out;

static __attribute__((noinline, noreturn)) void leave(int depth) {
    recursion(depth);
    longjmp(way_out, 1);
}

static __attribute__((noinline, noreturn)) void never_returns(int depth) {
    leave(depth + 1);
}

static void no_return(void) {
    if (setjmp(way_out) == 0) never_returns(2);
}

static void frames(int round) {
    recursion(round % 20);
    variable_frame(1 + round * 37 % 5000);
    realigned_frame(1 + round * 53 % 3000);
    escaped = tail_call(100);
    free(escaped);
    no_return();
}

/* ---- Callbacks from libc, and what libc itself allocates ---- */

static int compare(const void *a, const void *b) {
    allocate();
    return *(const int *)a - *(const int *)b;
}

static void callbacks(void) {
    int numbers[] = {5, 2, 4};
    void *tree = NULL;
    char *text = NULL;
    qsort(numbers, 3, sizeof *numbers, compare);
    for (int i = 0; i < 3; i++) tsearch(&numbers[i], &tree, compare);
    for (int i = 0; i < 3; i++) tdelete(&numbers[i], &tree, compare);
    if (asprintf(&text, "%d numbers, the first of them %d", 3, numbers[0]) > 0) free(text);
    text = strdup("a copy");
    escaped = text;
    free(text);
    FILE *file = fopen("/dev/null", "w");
    if (file) {
        fprintf(file, "%d", numbers[1]);
        fclose(file);
    }
}

/* ---- Signals ---- */

static char *guarded; /* a page that cannot be read, until somebody tries */

static void on_signal(int number) {
    (void)number;
    recursion(2);
    KEEP_FRAME;
}

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    allocate();
    mprotect(info->si_addr, 1, PROT_READ | PROT_WRITE);
}

static void on_outer_signal(int number) {
    (void)number;
    allocate();
    raise(SIGUSR1); /* a handler in a handler */
    KEEP_FRAME;
}

/* Faults in its first instruction, before which another function ends. */
int read_at_once(const char *address);
#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".type read_at_once, @function\n"
        "read_at_once:\n"
        "    .cfi_startproc\n"
        "    movsbl (%rdi), %eax\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size read_at_once, . - read_at_once\n"
        ".popsection\n");
#else
__asm__(".pushsection .text\n"
        ".type read_at_once, %function\n"
        ".p2align 2\n"
        "read_at_once:\n"
        "    .cfi_startproc\n"
        "    ldrsb w0, [x0]\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size read_at_once, . - read_at_once\n"
        ".popsection\n");
#endif

static __attribute__((noinline)) void fault(int depth) {
    if (depth > 0)
        fault(depth - 1);
    else
        sink += read_at_once(guarded);
    KEEP_FRAME;
}

static void signals(void) {
    static const int stacks[] = {0, SA_ONSTACK};
    for (int i = 0; i < 2; i++) {
        struct sigaction plain = {.sa_handler = on_signal, .sa_flags = stacks[i]};
        struct sigaction outer = {.sa_handler = on_outer_signal, .sa_flags = stacks[i]};
        struct sigaction segment = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | stacks[i]};
        sigaction(SIGUSR1, &plain, NULL);
        sigaction(SIGUSR2, &outer, NULL);
        sigaction(SIGSEGV, &segment, NULL);
        raise(SIGUSR1);
        raise(SIGUSR2);
        mprotect(guarded, 1, PROT_NONE);
        fault(3);
    }
}

/* ---- Coroutines ---- */

#define COROUTINE_STACK (64 * 1024)

static ucontext_t main_context, outer_context, inner_context;

static void inner_coroutine(int depth) {
    recursion(depth);
    swapcontext(&inner_context, &outer_context);
    recursion(depth + 1);
}

static void start_context(
    ucontext_t *context, char *stack, ucontext_t *after, void (*function)(void), int argument) {
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = COROUTINE_STACK;
    context->uc_link = after;
    makecontext(context, function, 1, argument);
}

static void outer_coroutine(int depth) {
    static char stack[COROUTINE_STACK] __attribute__((aligned(16)));
    allocate();
    start_context(&inner_context, stack, &outer_context, (void (*)(void))inner_coroutine, depth);
    swapcontext(&outer_context, &inner_context);
    recursion(depth);
    swapcontext(&outer_context, &inner_context); /* which ends, and comes back by its link */
    raise(SIGUSR1);
}

static void coroutines(int round) {
    char *stack = mmap(NULL, COROUTINE_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    start_context(&outer_context, stack, &main_context, (void (*)(void))outer_coroutine, round % 5);
    swapcontext(&main_context, &outer_context);
    munmap(stack, COROUTINE_STACK);
}

/* ---- Threads ---- */

static pthread_key_t at_thread_end;

static void thread_ends(void *value) {
    (void)value;
    allocate();
    KEEP_FRAME;
}

static void *thread_main(void *argument) {
    pthread_setspecific(at_thread_end, argument);
    for (int i = 0; i < 5; i++) recursion(i);
    variable_frame(100);
    callbacks();
    return NULL;
}

static void threads(void) {
    static char own_stack[256 * 1024] __attribute__((aligned(64)));
    pthread_t thread[2];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, own_stack, sizeof own_stack);
    pthread_create(&thread[0], NULL, thread_main, &thread);
    pthread_create(&thread[1], &attributes, thread_main, &thread);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    pthread_attr_destroy(&attributes);
}

/* ---- Before, during and after main ---- */

static __attribute__((constructor)) void before_main(void) {
    recursion(1);
}

static __attribute__((destructor)) void after_main(void) {
    recursion(1);
}

static void at_exit(void) {
    allocate();
    KEEP_FRAME;
}

int main(int count, char **arguments) {
    static char alternate[64 * 1024];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    int rounds = count > 1 ? atoi(arguments[1]) : 1;
    sigaltstack(&stack, NULL);
    guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_key_create(&at_thread_end, thread_ends);
    atexit(at_exit);
    for (int round = 0; round < rounds; round++) {
        frames(round);
        callbacks();
        signals();
        coroutines(round);
        threads();
    }
    printf("%ld\n", allocations);
    return 0;
}
