#include "cli/run/launch.h"
#include "base/memory.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const int forwarded[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
static const int left_to_program[] = {SIGINT, SIGQUIT};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static volatile sig_atomic_t child_pid;

/* A signal that the kernel sends (a hang-up of the terminal) goes to the whole process group. The program has got it
 * already, so only signals from other processes are forwarded. */
static void forward(int signal, siginfo_t *information, void *context) {
    (void)context;
    int saved = errno;
    if (child_pid > 0 && information->si_code != SI_KERNEL) kill(child_pid, signal);
    errno = saved;
}

struct dispositions {
    struct sigaction forwarded[COUNT(forwarded)];
    struct sigaction left[COUNT(left_to_program)];
    sigset_t mask;
};

/* The signals stay blocked until the pid of the child is known, so that the handler loses none. Signals that are
 * ignored (nohup) stay ignored. */
static void take_signals(struct dispositions *before) {
    sigset_t block;
    sigemptyset(&block);
    for (size_t i = 0; i < COUNT(forwarded); i++) sigaddset(&block, forwarded[i]);
    sigprocmask(SIG_BLOCK, &block, &before->mask);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction pass = {.sa_sigaction = forward, .sa_flags = SA_SIGINFO | SA_RESTART};
    for (size_t i = 0; i < COUNT(left_to_program); i++)
        sigaction(left_to_program[i], &ignore, &before->left[i]);
    for (size_t i = 0; i < COUNT(forwarded); i++) {
        sigaction(forwarded[i], NULL, &before->forwarded[i]);
        if (before->forwarded[i].sa_handler != SIG_IGN) sigaction(forwarded[i], &pass, NULL);
    }
}

static void give_back_signals(const struct dispositions *before) {
    for (size_t i = 0; i < COUNT(left_to_program); i++) sigaction(left_to_program[i], &before->left[i], NULL);
    for (size_t i = 0; i < COUNT(forwarded); i++) sigaction(forwarded[i], &before->forwarded[i], NULL);
    sigprocmask(SIG_SETMASK, &before->mask, NULL);
}

/* The command line that runs the file by the shell. execvp does so for files that the kernel does not recognize. */
static char **for_shell(const char *path, char **arguments) {
    size_t count = 0;
    while (arguments[count]) count++;
    char **with_shell = memory_allocate((count + 2) * sizeof *with_shell);
    with_shell[0] = "/bin/sh";
    with_shell[1] = (char *)path;
    for (size_t i = 1; i < count; i++) with_shell[i + 1] = arguments[i];
    return with_shell;
}

/* Starts the program. Returns the pid of the child, or -1 with errno. If the child could not become the program,
 * `*exec_error` says why.
 *
 * vfork, because it copies no page tables: the child runs in our memory while we are suspended, until it calls
 * execv or _exit. Between vfork and execv the child only makes system calls and formats a number, so it leaves
 * nothing in our memory half done. */
static pid_t start(const char *path, char **arguments, char **with_shell, char *pid_text,
    const struct dispositions *before, volatile int *exec_error) {
    /* NOLINTBEGIN(clang-analyzer-security.insecureAPI.vfork,clang-analyzer-unix.Vfork): see above. */
    pid_t pid = vfork();
    if (pid == 0) {
        snprintf(pid_text, PID_TEXT_SIZE, "%d", (int)getpid());
        give_back_signals(before);
        execv(path, arguments);
        if (errno == ENOEXEC) execv(with_shell[0], with_shell);
        *exec_error = errno;
        _exit(127);
    }
    /* NOLINTEND(clang-analyzer-security.insecureAPI.vfork,clang-analyzer-unix.Vfork) */
    return pid;
}

int launch_and_wait(const char *path, char **arguments, char *pid_text, struct launched *ret_launched,
    struct problem *problem) {
    char **with_shell = for_shell(path, arguments);
    struct dispositions before;
    volatile int exec_error = 0;
    int status = 0;
    fflush(NULL);
    take_signals(&before);
    pid_t pid = start(path, arguments, with_shell, pid_text, &before, &exec_error);
    int fork_error = errno;
    free(with_shell);
    child_pid = pid;
    sigprocmask(SIG_SETMASK, &before.mask, NULL);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    child_pid = 0;
    give_back_signals(&before);
    if (pid < 0)
        return problem_set(problem, PROBLEM_FAILURE, "raise the limit of processes (ulimit -u)",
            "cannot start a process: %s", strerror(fork_error));
    if (exec_error)
        return problem_set(problem, problem_kind_of_errno(exec_error), "see if it runs without malloscope",
            "cannot run '%s': %s", path, strerror(exec_error));
    *ret_launched = (struct launched){pid, status};
    return 0;
}

int launch_pass_on(int status) {
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    int signal_number = WTERMSIG(status);
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(signal_number, &standard, NULL);
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, signal_number);
    sigprocmask(SIG_UNBLOCK, &mask, NULL);
    raise(signal_number);
    return 128 + signal_number;
}
