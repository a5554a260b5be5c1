/* Starts a program in the way that is asked for: starts WAY PATH. The program gets the argument "argument", and the
 * variable GIVEN where the way takes an environment. Where the program runs as a child, its exit status is passed
 * on. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char *path, *name;
static char *arguments[3];
static char *given[4096];

static int pass_on(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void handler(int signal) {
    (void)signal;
    execve(path, arguments, given);
    _exit(99);
}

static void in_handler(void) {
    static char stack[16384]; /* a small one, as programs have them */
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&alternative, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

static int spawn(int (*function)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                     char *const[], char *const[]),
    const char *what) {
    pid_t pid;
    int status, error = function(&pid, what, NULL, NULL, arguments, given);
    if (error) return 98;
    waitpid(pid, &status, 0);
    return pass_on(status);
}

/* A vfork child shares this memory: a few times, so that what it left behind would show. */
static int by_vfork(void) {
    int status = 0;
    for (int i = 0; i < 3; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            execve(path, arguments, given);
            _exit(97);
        }
        waitpid(pid, &status, 0);
        free(malloc(100000));
    }
    return pass_on(status);
}

static int by_popen(void) {
    char line[256];
    snprintf(line, sizeof line, "exec '%s' argument", path);
    FILE *pipe = popen(line, "r");
    while (fgets(line, sizeof line, pipe)) fputs(line, stdout);
    return pass_on(pclose(pipe));
}

static int by_system(void) {
    char line[256];
    snprintf(line, sizeof line, "'%s' argument", path);
    return pass_on(system(line));
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const char *way = argv[1];
    path = argv[2];
    name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    arguments[0] = path;
    arguments[1] = "argument";
    size_t count = 0;
    for (; environ[count] && count < 4000; count++) given[count] = environ[count];
    given[count] = "GIVEN=1";
    free(malloc(1000000));
    if (strcmp(way, "execve") == 0) execve(path, arguments, given);
    if (strcmp(way, "execv") == 0) execv(path, arguments);
    if (strcmp(way, "execvp") == 0) execvp(name, arguments);
    if (strcmp(way, "execvpe") == 0) execvpe(name, arguments, given);
    if (strcmp(way, "execl") == 0) execl(path, path, "argument", (char *)NULL);
    if (strcmp(way, "execlp") == 0) execlp(name, path, "argument", (char *)NULL);
    if (strcmp(way, "execle") == 0) execle(path, path, "argument", (char *)NULL, given);
    if (strcmp(way, "fexecve") == 0) fexecve(open(path, O_RDONLY | O_CLOEXEC), arguments, given);
    if (strcmp(way, "fexecve-path") == 0) fexecve(open(path, O_PATH | O_CLOEXEC), arguments, given);
    if (strcmp(way, "execveat") == 0) execveat(AT_FDCWD, path, arguments, given, 0);
    if (strcmp(way, "syscall") == 0) syscall(SYS_execve, path, arguments, given);
    if (strcmp(way, "syscall-at") == 0) syscall(SYS_execveat, AT_FDCWD, path, arguments, given, 0);
    if (strcmp(way, "handler") == 0) in_handler();
    if (strcmp(way, "bad-pointers") == 0) {
        char *bad[] = {"A=1", (char *)8, NULL};
        int faults = (execve(path, arguments, (char **)8) < 0) & (errno == EFAULT);
        faults += (execve(path, arguments, bad) < 0) & (errno == EFAULT);
        faults += (execve((char *)8, arguments, environ) < 0) & (errno == EFAULT);
        return faults;
    }
    if (strcmp(way, "vfork") == 0) return by_vfork();
    if (strcmp(way, "spawn") == 0) return spawn(posix_spawn, path);
    if (strcmp(way, "spawnp") == 0) return spawn(posix_spawnp, name);
    if (strcmp(way, "system") == 0) return by_system();
    if (strcmp(way, "popen") == 0) return by_popen();
    if (strcmp(way, "fork") == 0) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            execve(path, arguments, given);
            _exit(96);
        }
        waitpid(pid, &status, 0);
        return pass_on(status);
    }
    return 95; /* it was not started */
}
