/* fork_anywhere OPERATION HOW FIRST STRIDE: a signal handler forks at an instruction of an operation, and its child
 * returns into the operation: at the instruction FIRST, then STRIDE further on, and so on to the operation's end.
 * OPERATION is malloc, calloc, aligned, realloc, free, resize-failing or new-stack; HOW is fork, _Fork, syscall or
 * tight: fork where there is no memory for a copy; or jump: the handler leaves the recorder's code by longjmp, and the
 * program forks later, deeper on its stack.
 *
 * The processor traps after each instruction (EFLAGS.TF). A signal that the recorder holds back would not have come at
 * such an instruction, so the handler waits for one at which signals are let in. */
#define _GNU_SOURCE
#include "ledger.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define KEPT        5 /* blocks that are live throughout */
#define TRAP_FLAG   0x100
#define SIZE        200
#define CHILD_SIZE  77
#define CHILD_FREES 2 /* of the inherited blocks */

static volatile long steps, strike_at;
static volatile pid_t child;
static const char *operation, *how;
static void *kept[KEPT];
static sigjmp_buf out;
static uintptr_t recorder_start; /* where the library lies that serves malloc */
#define RECORDER_SIZE 0x100000
static long struck, allocated;

/* Forks while the process may map no more than a MiB. */
static pid_t fork_with_little_memory(void) {
    char text[64] = "";
    int file = open("/proc/self/statm", O_RDONLY);
    struct rlimit limit;
    REQUIRE(read(file, text, sizeof text - 1) > 0 && close(file) == 0 && getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = (rlim_t)atol(text) * (rlim_t)sysconf(_SC_PAGESIZE) + (1 << 20);
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    pid_t pid = fork();
    limit.rlim_cur = limit.rlim_max;
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    return pid;
}

static pid_t fork_now(void) {
    if (how[0] == '_') return _Fork();
    if (how[0] == 't') return fork_with_little_memory();
    return how[0] == 's' ? (pid_t)syscall(SYS_fork) : fork();
}

static void on_step(int signal, siginfo_t *info, void *given) {
    (void)signal, (void)info;
    ucontext_t *context = given;
    if (++steps < strike_at || sigismember(&context->uc_sigmask, SIGUSR1)) return;
    if (how[0] == 'j') {
        if ((uintptr_t)context->uc_mcontext.gregs[REG_RIP] - recorder_start < RECORDER_SIZE)
            siglongjmp(out, 1);
        return;
    }
    context->uc_mcontext.gregs[REG_EFL] &= ~(long)TRAP_FLAG;
    child = fork_now();
}

__attribute__((noinline)) static void set_trap(bool on) {
    if (on)
        __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" : : "i"(TRAP_FLAG) : "cc", "memory");
    else
        __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" : : "i"(~TRAP_FLAG) : "cc", "memory");
}

/* The bits of `way` say which functions the call comes through: a stack for each way. */
__attribute__((noinline)) static void *go_left(unsigned way, int levels);

__attribute__((noinline)) static void *go_right(unsigned way, int levels) {
    void *volatile block = NULL;
    if (levels == 0)
        block = malloc(SIZE); /* @site operation */
    else
        block = way & 1 ? go_right(way >> 1, levels - 1) : go_left(way >> 1, levels - 1);
    return block;
}

static void *go_left(unsigned way, int levels) {
    void *volatile block = go_right(way, levels);
    return block;
}

/* Returns a block to be freed, or NULL. */
static void *operate(void *block) {
    void *volatile result = NULL;
    set_trap(true);
    if (strcmp(operation, "malloc") == 0)
        result = malloc(SIZE); /* @site operation */
    else if (strcmp(operation, "calloc") == 0)
        result = calloc(4, SIZE / 4); /* @site operation */
    else if (strcmp(operation, "aligned") == 0)
        result = aligned_alloc(256, 256); /* @site operation */
    else if (strcmp(operation, "realloc") == 0)
        result = realloc(block, 3 * SIZE); /* @site operation */
    else if (strcmp(operation, "resize-failing") == 0)
        result = realloc(block, PTRDIFF_MAX) ? NULL : block;
    else if (strcmp(operation, "new-stack") == 0)
        result = go_right((unsigned)struck, 14);
    else
        free(block);
    set_trap(false);
    return result;
}

static _Noreturn void live_as_child(void *result) {
    if (result) memset(result, 7, SIZE);
    free(result);
    for (int i = 0; i < CHILD_FREES; i++) free(kept[i]);
    for (int i = 0; i < 3; i++) {
        void *block = malloc(CHILD_SIZE); /* @site child */
        ESCAPE(block);
        memset(block, 7, CHILD_SIZE);
        if (i == 1) free(block);
    }
    _exit(0);
}

/* The word that a call left on the stack before it was jumped out of is further out than this frame. */
__attribute__((noinline)) static pid_t fork_deeper(void) {
    char volatile deep[32768];
    deep[0] = 1;
    pid_t pid = fork();
    if (pid == 0) live_as_child(NULL);
    return pid;
}

static void operate_and_jump(void) {
    if (sigsetjmp(out, 1) == 0) {
        free(operate(NULL));
        child = -1;
    } else {
        child = fork_deeper();
    }
}

int main(int argc, char **argv) {
    Dl_info library;
    if (dladdr((void *)malloc, &library)) recorder_start = (uintptr_t)library.dli_fbase;
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    REQUIRE(argc == 5 && sigaction(SIGTRAP, &action, NULL) == 0);
    operation = argv[1];
    how = argv[2];
    long stride = atol(argv[4]), failed = 0;
    bool takes = strcmp(operation, "realloc") == 0 || strcmp(operation, "resize-failing") == 0 ||
                 strcmp(operation, "free") == 0;
    for (int i = 0; i < KEPT; i++) kept[i] = malloc(1000); /* @site kept */
    strike_at = LONG_MAX;                       /* once without a fork, so that the stack is known */
    free(operate(takes ? malloc(SIZE) : NULL)); /* @site taken */
    allocated++;
    /* A sampled operation takes more instructions than others. The end is where none has got for a while. */
    strike_at = atol(argv[3]);
    for (int missed = 0; missed < 20;) {
        void *block = takes ? malloc(SIZE) : NULL; /* @site taken */
        steps = 0;
        child = -1;
        void *result = NULL;
        if (how[0] == 'j')
            operate_and_jump();
        else
            result = operate(block);
        if (child == 0) live_as_child(result);
        allocated++;
        free(result);
        missed = child < 0 ? missed + 1 : 0;
        if (child < 0) continue;
        strike_at += stride;
        struck++;
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        if (status != 0) fprintf(stderr, "before instruction %ld: status %#x\n", strike_at, (unsigned)status);
        failed += status != 0;
    }
    printf("{\"pid\": %d, \"struck\": %ld, \"failed\": %ld, \"allocated\": %ld, \"takes\": %d}\n", getpid(),
        struck, failed, allocated, takes);
    return 0;
}
