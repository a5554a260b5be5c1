/* hard_life MODE [ARGUMENT]: does things with processes and threads that are rare and legal. Prints what it
 * does. */
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *argument;

__attribute__((noinline)) static void *keep(size_t size) {
    void *block = malloc(size); /* @site kept */
    ESCAPE(block);
    return block;
}

__attribute__((noinline)) static void churn(int times) {
    for (int i = 0; i < times; i++) {
        void *block = malloc(1 + (size_t)i % 3000);
        ESCAPE(block);
        free(block);
    }
}

static void say(const char *text) {
    printf("%s\n", text);
    fflush(stdout);
}

static int wait_for(pid_t pid) {
    int status = 0;
    REQUIRE(waitpid(pid, &status, __WALL) == pid);
    printf("child: exited %d status %d signal %d\n", WIFEXITED(status),
        WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    fflush(stdout);
    return status;
}

static int life_of_a_child(void) {
    churn(1000);
    for (int i = 0; i < 5; i++) keep(2000);
    return 7;
}

/* ---- forks that run no fork handlers ---- */

static int mode_underscore_fork(void) {
    keep(1000);
    pid_t pid = _Fork();
    if (pid == 0) exit(life_of_a_child());
    wait_for(pid);
    churn(1000);
    return 0;
}

static int mode_raw_fork(void) {
    keep(1000);
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) exit(life_of_a_child());
    wait_for(pid);
    churn(1000);
    return 0;
}

static int on_new_stack(void *unused) {
    (void)unused;
    return life_of_a_child();
}

/* The child has a stack that it is given, in memory of its own. */
static int mode_clone(void) {
    enum { SIZE = 1 << 18 };
    char *stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(stack != MAP_FAILED);
    keep(1000);
    wait_for(clone(on_new_stack, stack + SIZE, SIGCHLD, NULL));
    churn(1000);
    return 0;
}

/* ---- forks in odd places ---- */

static _Atomic int stop;

static void *churn_on(void *unused) {
    while (!stop) churn(100);
    return unused;
}

static void *fork_twice(void *unused) {
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        keep(1000);
        pid_t inner = fork();
        if (inner == 0) exit(life_of_a_child());
        REQUIRE(pthread_create(&thread, NULL, churn_on, NULL) == 0);
        churn(1000);
        wait_for(inner);
        exit(8);
    }
    wait_for(pid);
    return unused;
}

/* A thread forks while others allocate. So does the child, which has threads by then. */
static int mode_fork_in_thread(void) {
    pthread_t busy[4], forking;
    for (int i = 0; i < 4; i++) REQUIRE(pthread_create(&busy[i], NULL, churn_on, NULL) == 0);
    for (int i = 0; i < 10; i++) {
        REQUIRE(pthread_create(&forking, NULL, fork_twice, NULL) == 0);
        REQUIRE(pthread_join(forking, NULL) == 0);
    }
    stop = 1;
    for (int i = 0; i < 4; i++) pthread_join(busy[i], NULL);
    return 0;
}

static volatile sig_atomic_t is_child, forks, failures;

static void fork_here(int number) {
    (void)number;
    pid_t pid = _Fork();
    is_child = pid == 0;
    int status = 0;
    if (pid > 0 && waitpid(pid, &status, 0) == pid) forks++;
    if (status) failures++;
}

/* A signal handler forks. In both processes it returns into the code that it has interrupted, often malloc or
 * fork. */
static int mode_fork_in_handler(void) {
    struct sigaction action = {.sa_handler = fork_here, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 10000}, {0, 10000}};
    REQUIRE(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    while (!is_child && forks < 50) {
        churn(100);
        pid_t pid = fork();
        if (pid == 0) _exit(0);
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL); /* no more children from here on */
    if (is_child) {
        churn(1000);
        _exit(0);
    }
    printf("%d failures\n", (int)failures);
    return 0;
}

static int mode_double_fork(void) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        if (fork() != 0) _exit(0);
        close(ends[0]);
        churn(1000);
        keep(1000);
        REQUIRE(write(ends[1], "x", 1) == 1);
        exit(0);
    }
    close(ends[1]);
    wait_for(pid);
    char letter;
    while (read(ends[0], &letter, 1) > 0) say("from the grandchild");
    return 0;
}

static int mode_system(void) {
    keep(1000);
    printf("system: %d\n", system("test -n \"$PATH\" && exit 5"));
    FILE *pipe = popen("echo from the shell", "r");
    char line[100] = "";
    REQUIRE(pipe && fgets(line, sizeof line, pipe));
    printf("popen: %s", line);
    printf("pclose: %d\n", pclose(pipe));
    return 0;
}

/* ---- signals ---- */

static sigjmp_buf back;
static volatile sig_atomic_t caught;

static void on_fault(int number) {
    (void)number;
    churn(10);
    caught++;
    siglongjmp(back, 1);
}

/* Jumps out of signal handlers that have allocated, and that run on a stack of their own. */
static int mode_jump_out(void) {
    static char space[1 << 16] __attribute__((aligned(16)));
    stack_t stack = {.ss_sp = space, .ss_size = sizeof space};
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    REQUIRE(sigaltstack(&stack, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
    void *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (volatile int i = 0; i < 5000; i++) {
        if (sigsetjmp(back, 1) == 0) *(volatile char *)nowhere = 1;
        churn(10);
    }
    printf("caught %d\n", (int)caught);
    return 0;
}

static void *endless(void *unused) {
    for (;;) {
        pthread_testcancel();
        churn(10);
    }
    return unused;
}

static int mode_cancel(void) {
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        void *result;
        REQUIRE(pthread_create(&thread, NULL, endless, NULL) == 0);
        churn(100);
        REQUIRE(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
        REQUIRE(result == PTHREAD_CANCELED);
    }
    say("all cancelled");
    return 0;
}

/* ---- threads ---- */

static void *short_life(void *unused) {
    churn(3);
    return unused;
}

static int mode_thread_storm(void) {
    enum { AT_ONCE = 50 };
    pthread_attr_t small;
    REQUIRE(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 65536) == 0);
    int count = atoi(argument);
    for (int done = 0; done < count; done += AT_ONCE) {
        pthread_t thread[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) REQUIRE(pthread_create(&thread[i], &small, short_life, NULL) == 0);
        for (int i = 0; i < AT_ONCE; i++) REQUIRE(pthread_join(thread[i], NULL) == 0);
    }
    printf("%d threads came and went\n", count);
    return 0;
}

static pthread_key_t keys[40];
static _Atomic long destroyed;

/* A destructor of thread-specific data that sets its value again, and so is called in every round that POSIX
 * permits. */
static void destroy(void *value) {
    free(value);
    destroyed++;
    for (int i = 0; i < 40; i++) pthread_setspecific(keys[i], malloc(100));
}

static void *with_specifics(void *unused) {
    for (int i = 0; i < 40; i++) pthread_setspecific(keys[i], malloc(100));
    return unused;
}

static int mode_late_destructors(void) {
    for (int i = 0; i < 40; i++) REQUIRE(pthread_key_create(&keys[i], destroy) == 0);
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, with_specifics, NULL) == 0 && pthread_join(thread, NULL) == 0);
    }
    printf("destroyed: %s\n", destroyed >= 200 * 40 * 4 ? "in every round" : "too few");
    return 0;
}

/* ---- before main and after exit ---- */

static void *early_block;

static void allocate_early(void) {
    early_block = keep(5000);
    churn(100);
}
__attribute__((section(".preinit_array"), used)) static void (*const before_all)(void) = allocate_early;

__attribute__((constructor(101))) static void construct(void) {
    churn(100);
}

__attribute__((destructor(101))) static void destruct(void) {
    free(early_block);
    churn(100);
    keep(6000);
}

static int mode_edges(void) {
    say("in main");
    return 0;
}

/* ---- where files are out of reach ---- */

static int mode_chroot(void) {
    REQUIRE(chroot(argument) == 0 && chdir("/") == 0);
    for (int i = 0; i < 30000; i++) keep(10);
    pid_t pid = fork();
    if (pid == 0) exit(life_of_a_child());
    wait_for(pid);
    return 0;
}

static int mode_drop_privileges(void) {
    REQUIRE(setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
    for (int i = 0; i < 300000; i++) keep(10);
    pid_t pid = fork();
    if (pid == 0) exit(life_of_a_child());
    wait_for(pid);
    return 0;
}

static int mode_limits(void) {
    struct rlimit small = {1 << 20, 1 << 20}, no_files = {0, 0};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0 && setrlimit(RLIMIT_NOFILE, &no_files) == 0);
    for (int i = 0; i < 300000; i++) keep(10);
    churn(10000);
    say("limited");
    return 0;
}

/* Closes all descriptors, as daemons do that do not know what they have inherited. */
static int mode_close_all(void) {
    REQUIRE(close_range(3, ~0u, 0) == 0);
    for (int i = 0; i < 300000; i++) keep(10);
    int file = open("/dev/null", O_RDONLY);
    printf("the next descriptor is %d\n", file);
    return 0;
}

/* For tests that fill the disk below the recording. */
static int mode_much(void) {
    for (int i = 0; i < 400000; i++) keep(10);
    churn(100000);
    say("much");
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} modes[] = {
    {"_Fork", mode_underscore_fork},
    {"raw-fork", mode_raw_fork},
    {"clone", mode_clone},
    {"fork-in-thread", mode_fork_in_thread},
    {"fork-in-handler", mode_fork_in_handler},
    {"double-fork", mode_double_fork},
    {"system", mode_system},
    {"jump-out", mode_jump_out},
    {"cancel", mode_cancel},
    {"thread-storm", mode_thread_storm},
    {"late-destructors", mode_late_destructors},
    {"edges", mode_edges},
    {"chroot", mode_chroot},
    {"drop-privileges", mode_drop_privileges},
    {"limits", mode_limits},
    {"close-all", mode_close_all},
    {"much", mode_much},
};

int main(int argc, char **argv) {
    REQUIRE(argc >= 2);
    argument = argc > 2 ? argv[2] : "";
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(argv[1], modes[i].name) == 0) return modes[i].run();
    return 98;
}
