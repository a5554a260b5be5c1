/* fail_calls LIBRARY SKIP-FROM SKIP-TO NUMBER HOW ERROR LOG COMMAND ...
 *
 * Runs a program in which a library is loaded, and makes the library's NUMBERth system call fail with the
 * error number ERROR: it is not made. HOW "once" fails that call alone, "from" all from there on. LOG gets a
 * line for each call: its number, whether it failed, which one it is, from where in the library. With NUMBER
 * 0 none fails. Ends as the program does.
 *
 * A call is the library's if it is made by its code, or by a function of libc that its code has called. What
 * lies between SKIP-FROM and SKIP-TO in the library, its version of syscall(), makes the program's own calls,
 * and so do the calls that stand for others (fork, exit, ...). What malloc asks the kernel for is malloc's:
 * between the library and such a call lies another function of libc. A stack has addresses of calls that are
 * long over, too: one counts if it lies behind a call of the very function that was then found in libc. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS         48    /* of the stack that are looked at for return addresses */
#define PROCESSES     32768 /* threads and processes that the program may have in its life */
#define CODES         64
#define FUNCTION_MOST 4096 /* bytes of a function of libc that makes system calls */

struct code {
    uint64_t start, end;
    enum { OTHER, OURS, LIBC } whose;
};

/* Of each thread; what a process has mapped is read at every call, which is slow and right. */
struct thread {
    pid_t pid;
    bool fails;
};

static struct {
    const char *library;
    uint64_t skip_from, skip_to, base;
    long number, count;
    bool once;
    int error;
    FILE *log;
    struct thread threads[PROCESSES];
    size_t thread_count;
    struct code codes[CODES];
    size_t code_count;
} state;

static void check(bool good, const char *what) {
    if (good) return;
    fprintf(stderr, "fail_calls: %s: %s\n", what, strerror(errno));
    exit(120);
}

static struct thread *thread_of(pid_t pid) {
    for (size_t i = state.thread_count; i-- > 0;)
        if (state.threads[i].pid == pid) return &state.threads[i];
    check(state.thread_count < PROCESSES, "too many threads");
    struct thread *thread = &state.threads[state.thread_count++];
    *thread = (struct thread){.pid = pid};
    return thread;
}

static void read_codes(pid_t pid) {
    char path[64], line[4500];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "r");
    state.code_count = 0;
    state.base = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        uint64_t start, end;
        char rights[8], *name = strchr(line, '/');
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &start, &end, rights) != 3) continue;
        bool ours = name && strncmp(name, state.library, strlen(state.library)) == 0;
        if (ours && !state.base) state.base = start;
        if (rights[2] != 'x' || state.code_count == CODES) continue;
        bool libc = name && strstr(name, "/libc.so");
        state.codes[state.code_count++] = (struct code){start, end, ours ? OURS : libc ? LIBC : OTHER};
    }
    if (maps) fclose(maps);
}

static const struct code *code_at(uint64_t address) {
    for (size_t i = 0; i < state.code_count; i++)
        if (address >= state.codes[i].start && address < state.codes[i].end) return &state.codes[i];
    return NULL;
}

/* What the library passes on for the program, and what never fails. */
static bool is_left_alone(const struct __ptrace_syscall_info *info) {
    switch (info->entry.nr) {
    case SYS_getpid:
    case SYS_getppid:
    case SYS_gettid:
    case SYS_clone:
    case SYS_clone3:
    case SYS_fork:
    case SYS_vfork:
    case SYS_execve:
    case SYS_exit:
    case SYS_exit_group:
    case SYS_rt_sigreturn:
        return true;
    case SYS_prctl:
        return info->entry.args[0] != PR_GET_NAME && info->entry.args[0] != PR_GET_TAGGED_ADDR_CTRL;
    default:
        return false;
    }
}

/* malloc makes these, too, on behalf of the program. */
static bool is_mallocs(uint64_t number) {
    return number == SYS_mmap || number == SYS_munmap || number == SYS_mprotect || number == SYS_madvise ||
           number == SYS_mremap || number == SYS_brk || number == SYS_getrandom;
}

static bool read_there(pid_t pid, uint64_t address, void *ret, size_t size) {
    struct iovec here = {ret, size}, there = {(void *)address, size};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* Whether the instruction before `address` calls a function in which one of the `places` lies. The library
 * calls libc through its table of addresses: call *displacement(%rip). */
static bool is_call_of(pid_t pid, uint64_t address, const uint64_t *places, int count) {
    struct __attribute__((packed)) {
        uint8_t code[2];
        int32_t displacement;
    } call;
    uint64_t target;
    if (!read_there(pid, address - sizeof call, &call, sizeof call)) return false;
    if (call.code[0] != 0xff || call.code[1] != 0x15) return false;
    if (!read_there(pid, address + (uint64_t)(int64_t)call.displacement, &target, sizeof target))
        return false;
    for (int i = 0; i < count; i++)
        if (places[i] - target < FUNCTION_MOST) return true;
    return false;
}

/* Where the library has called the function of libc that makes this call; 0: it has not. */
static uint64_t caller_in_ours(pid_t pid, const struct __ptrace_syscall_info *info) {
    uint64_t words[WORDS], places[3] = {info->instruction_pointer};
    struct iovec here = {words, sizeof words}, there = {(void *)info->stack_pointer, sizeof words};
    ssize_t size = process_vm_readv(pid, &here, 1, &there, 1, 0);
    int count = 1, most = is_mallocs(info->entry.nr) ? 1 : 3; /* functions of libc that may lie in between */
    for (ssize_t i = 0; i < size / 8; i++) {
        const struct code *code = code_at(words[i]);
        if (!code) continue;
        if (code->whose == OTHER) return 0;
        if (code->whose == OURS && is_call_of(pid, words[i], places, count)) return words[i];
        if (code->whose == OURS) continue;
        if (count == most) return 0;
        places[count++] = words[i];
    }
    return 0;
}

/* The place in the library that a call comes from; 0: it is not the library's. */
static uint64_t place_in_ours(pid_t pid, const struct __ptrace_syscall_info *info) {
    if (is_left_alone(info)) return 0;
    read_codes(pid);
    const struct code *code = code_at(info->instruction_pointer);
    if (!code || code->whose == OTHER) return 0;
    uint64_t address = code->whose == LIBC ? caller_in_ours(pid, info) : info->instruction_pointer;
    if (!address) return 0;
    uint64_t place = address - state.base;
    return place >= state.skip_from && place < state.skip_to ? 0 : place;
}

static void at_entry(pid_t pid, const struct __ptrace_syscall_info *info) {
    uint64_t place = place_in_ours(pid, info);
    if (!place) return;
    long number = ++state.count;
    bool fails = state.number && number >= state.number && (number == state.number || !state.once);
    fprintf(state.log, "%ld %s %" PRIu64 " at %" PRIx64 " in %d\n", number, fails ? "failed" : "passed",
        (uint64_t)info->entry.nr, place, pid);
    if (!fails) return;
    thread_of(pid)->fails = true;
    struct user_regs_struct registers;
    ptrace(PTRACE_GETREGS, pid, 0, &registers);
    registers.orig_rax = (unsigned long long)-1;
    ptrace(PTRACE_SETREGS, pid, 0, &registers);
}

static void at_exit(pid_t pid) {
    struct thread *thread = thread_of(pid);
    if (!thread->fails) return;
    thread->fails = false;
    struct user_regs_struct registers;
    ptrace(PTRACE_GETREGS, pid, 0, &registers);
    registers.rax = (unsigned long long)-state.error;
    ptrace(PTRACE_SETREGS, pid, 0, &registers);
}

static void at_call(pid_t pid) {
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) <= 0) return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
        at_entry(pid, &info);
    else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
        at_exit(pid);
}

static void after_stop(pid_t pid, int status) {
    int event = status >> 16, number = WSTOPSIG(status);
    if (number == (SIGTRAP | 0x80)) {
        at_call(pid);
        number = 0;
    } else if (event == PTRACE_EVENT_STOP) {
        bool group = number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
        if (group) {
            ptrace(PTRACE_LISTEN, pid, 0, 0);
            return;
        }
        number = 0;
    } else if (event) {
        number = 0;
    }
    ptrace(PTRACE_SYSCALL, pid, 0, (long)number);
}

static pid_t start(char **command) {
    int gate[2];
    check(pipe(gate) == 0, "pipe");
    pid_t pid = fork();
    check(pid >= 0, "fork");
    if (pid == 0) {
        char go;
        close(gate[1]);
        if (read(gate[0], &go, 1) != 1) _exit(121);
        close(gate[0]);
        setenv("LD_PRELOAD", state.library, 1);
        execv(command[0], command);
        _exit(122);
    }
    close(gate[0]);
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                   PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    check(ptrace(PTRACE_SEIZE, pid, 0, options) == 0, "ptrace");
    ptrace(PTRACE_INTERRUPT, pid, 0, 0); /* from this stop on, each call is one */
    check(write(gate[1], "", 1) == 1, "write");
    close(gate[1]);
    return pid;
}

int main(int argc, char **argv) {
    check(argc > 8, "LIBRARY SKIP-FROM SKIP-TO NUMBER once|from ERROR LOG COMMAND ...");
    state.library = argv[1];
    state.skip_from = strtoull(argv[2], NULL, 16);
    state.skip_to = strtoull(argv[3], NULL, 16);
    state.number = atol(argv[4]);
    state.once = strcmp(argv[5], "once") == 0;
    state.error = atoi(argv[6]);
    state.log = fopen(argv[7], "we");
    check(state.log != NULL, argv[7]);

    pid_t first = start(argv + 8);
    int ending = 0, status;
    for (pid_t pid; (pid = waitpid(-1, &status, __WALL)) > 0;)
        if (WIFSTOPPED(status))
            after_stop(pid, status);
        else if (pid == first)
            ending = status;
    fclose(state.log);
    if (WIFSIGNALED(ending)) {
        signal(WTERMSIG(ending), SIG_DFL);
        raise(WTERMSIG(ending));
    }
    return WEXITSTATUS(ending);
}
