/* lifecycle MODE: begins and ends processes in a given way. Prints what it does. The exit status is a part of
 * what is compared. */
#include "ledger.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char *self;

__attribute__((noinline)) static void *allocate_before(size_t size) {
    void *block = malloc(size); /* @site before */
    ESCAPE(block);
    return block;
}

__attribute__((noinline)) static void *allocate_after(size_t size) {
    void *block = malloc(size); /* @site after */
    ESCAPE(block);
    return block;
}

static void say(const char *text) {
    printf("%s\n", text);
    fflush(stdout);
}

static int wait_for(pid_t pid) {
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    printf("child: exited %d status %d signal %d\n", WIFEXITED(status),
        WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    fflush(stdout);
    return status;
}

/* The parent frees all it had, the child some of what it inherited. */
static int mode_fork(void) {
    void *blocks[10];
    for (int i = 0; i < 10; i++) blocks[i] = allocate_before(1000);
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 3; i++) free(blocks[i]);
        for (int i = 0; i < 5; i++) allocate_after(2000);
        say("in the child");
        exit(7);
    }
    wait_for(pid);
    for (int i = 0; i < 10; i++) free(blocks[i]);
    for (int i = 0; i < 2; i++) allocate_after(3000);
    return 0;
}

static int fork_deep(int depth) {
    allocate_before(1000 + (size_t)depth);
    if (depth == 4) return 0;
    pid_t pid = fork();
    if (pid == 0) _exit(fork_deep(depth + 1));
    wait_for(pid);
    return 0;
}

static volatile int running = 1;

static void *allocate_for_ever(void *argument) {
    (void)argument;
    while (running) {
        void *block = malloc(100);
        ESCAPE(block);
        free(block);
    }
    return NULL;
}

/* fork while other threads are inside the allocator. */
static int mode_fork_threads(void) {
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, allocate_for_ever, NULL);
    for (int i = 0; i < 50; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            for (int k = 0; k < 1000; k++) free(allocate_after(500));
            _exit(i);
        }
        int status = 0;
        REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == i);
    }
    running = 0;
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    say("all children ended");
    return 0;
}

static int mode_exec(void) {
    allocate_before(5000);
    execl(self, self, "child", (char *)NULL);
    return 1;
}

static int mode_child(void) {
    for (int i = 0; i < 4; i++) allocate_after(700);
    say("in the new program");
    return 5;
}

static int mode_daemon(void) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    allocate_before(1000);
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            for (int i = 0; i < 6; i++) allocate_after(400);
            REQUIRE(write(ends[1], "daemon\n", 7) == 7);
            _exit(0);
        }
        _exit(0);
    }
    close(ends[1]);
    wait(NULL);
    char text[16] = {0};
    ssize_t size = 0, got;
    while ((got = read(ends[0], text + size, sizeof text - 1 - (size_t)size)) > 0) size += got;
    printf("heard: %s", text);
    return 0;
}

static int mode_vfork(void) {
    for (int i = 0; i < 3; i++) allocate_before(1000);
    pid_t pid = vfork();
    if (pid == 0) {
        execl(self, self, "child", (char *)NULL);
        _exit(1);
    }
    wait_for(pid);
    pid = vfork();
    if (pid == 0) _exit(3);
    wait_for(pid);
    for (int i = 0; i < 2; i++) allocate_after(300);
    return 0;
}

static int mode_spawn(void) {
    char *arguments[] = {self, "child", NULL};
    for (int i = 0; i < 3; i++) allocate_before(1000);
    pid_t pid;
    REQUIRE(posix_spawn(&pid, self, NULL, NULL, arguments, environ) == 0);
    wait_for(pid);
    char *missing[] = {"/nonexistent/program", NULL};
    REQUIRE(posix_spawn(&pid, missing[0], NULL, NULL, missing, environ) == ENOENT);
    printf("system: %d\n", WEXITSTATUS(system("exit 9")));
    FILE *pipe = popen("echo through a pipe", "r");
    char line[64];
    REQUIRE(fgets(line, sizeof line, pipe));
    printf("%s", line);
    pclose(pipe);
    return 0;
}

static void *open_plugin(int flags) {
    char path[4096];
    snprintf(path, sizeof path, "%s", self);
    snprintf(strrchr(path, '/'), 32, "/libplugin.so");
    void *library = dlopen(path, RTLD_NOW | flags);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    REQUIRE(library);
    return library;
}

/* A library is opened with RTLD_DEEPBIND, and so finds the functions of its own dependencies first. The program
 * frees blocks of the library, and the library blocks of the program. */
static int mode_deep_bind(void) {
    void *library = open_plugin(RTLD_DEEPBIND);
    void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(library, "plugin_allocate");
    void (*release)(void *) = (void (*)(void *))dlsym(library, "plugin_free");
    REQUIRE(allocate && release);
    for (int i = 0; i < 1000; i++) {
        release(allocate_before(100 + (size_t)i));
        free(allocate(100 + (size_t)i));
        void *block = realloc(allocate(200), 3000);
        release(block);
    }
    say("bound deeply");
    return 0;
}

/* A library is opened and closed again and again; what it allocated stays. */
static int mode_plugin(void) {
    for (int i = 0; i < 20; i++) {
        void *library = open_plugin(RTLD_LOCAL);
        void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(library, "plugin_allocate");
        REQUIRE(allocate);
        void *block = allocate(600);
        if (i % 2) free(block);
        dlclose(library);
        free(allocate_after(10));
    }
    say("closed");
    return 0;
}

static int mode_underscore_exit(void) {
    for (int i = 0; i < 5; i++) allocate_before(1000);
    say("leaving");
    _exit(11);
}

static int mode_abort(void) {
    for (int i = 0; i < 5; i++) allocate_before(1000);
    say("aborting");
    abort();
}

static int mode_segfault(void) {
    for (int i = 0; i < 5; i++) allocate_before(1000);
    say("crashing");
    *(volatile int *)8 = 1;
    return 0;
}

static int mode_signal(void) {
    for (int i = 0; i < 5; i++) allocate_before(1000);
    say("killing myself");
    kill(getpid(), SIGTERM);
    pause();
    return 0;
}

static void *sleep_for_ever(void *argument) {
    free(allocate_after(100));
    pthread_barrier_wait(argument);
    for (;;) pause();
    return NULL;
}

/* exit while other threads run, one of them allocating. */
static int mode_thread_exit(void) {
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 5);
    pthread_t thread;
    for (int i = 0; i < 4; i++) pthread_create(&thread, NULL, sleep_for_ever, &barrier);
    pthread_create(&thread, NULL, allocate_for_ever, NULL);
    pthread_barrier_wait(&barrier);
    say("exiting beside threads");
    exit(4);
}

static void *exit_from_here(void *argument) {
    say(argument);
    exit(6);
}

static int mode_exit_in_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, exit_from_here, "exiting in a thread");
    pthread_join(thread, NULL);
    return 0;
}

static void *main_is_gone(void *argument) {
    pthread_join(*(pthread_t *)argument, NULL);
    for (int i = 0; i < 5; i++) allocate_after(50);
    say("main has ended before");
    return NULL;
}

static int mode_main_ends_first(void) {
    static pthread_t me;
    me = pthread_self();
    pthread_t thread;
    pthread_create(&thread, NULL, main_is_gone, &me);
    allocate_before(100);
    pthread_exit(NULL);
}

/* Many short threads. Their records are used again, and their blocks are freed by another thread. */
static void *short_thread(void *argument) {
    (void)argument;
    return allocate_before(64);
}

static int mode_many_threads(void) {
    for (int round = 0; round < 250; round++) {
        pthread_t threads[20];
        for (int i = 0; i < 20; i++) REQUIRE(pthread_create(&threads[i], NULL, short_thread, NULL) == 0);
        for (int i = 0; i < 20; i++) {
            void *block;
            pthread_join(threads[i], &block);
            if (i % 4) free(block);
        }
    }
    say("5000 threads");
    return 0;
}

static int mode_limit(void) {
    struct rlimit limit = {(rlim_t)1 << 30, (rlim_t)1 << 30};
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    for (int i = 0; i < 64; i++) REQUIRE(allocate_before(1 << 20));
    errno = 0;
    REQUIRE(!allocate_after((size_t)2 << 30) && errno == ENOMEM);
    long count = 0;
    while (allocate_after(1 << 20)) count++;
    REQUIRE(count > 100);
    say("limited");
    return 0;
}

/* Signals that arrive at any moment, and allocations in an atexit handler. */
static void ignore(int signal_number) {
    (void)signal_number;
}

static void at_the_end(void) {
    for (int i = 0; i < 10; i++) allocate_after(200);
    say("at the end");
}

static int mode_atexit(void) {
    REQUIRE(atexit(at_the_end) == 0);
    signal(SIGALRM, ignore);
    ualarm(500, 500);
    for (int i = 0; i < 200000; i++) free(allocate_before(1 + (size_t)i % 3000));
    ualarm(0, 0);
    return 0;
}

/* A stack of the program's own making. */
static char other_stack[1 << 16] __attribute__((aligned(16)));

static void on_other_stack(int signal_number) {
    (void)signal_number;
    for (int i = 0; i < 100; i++) free(allocate_after(1000));
}

static int mode_other_stack(void) {
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    REQUIRE(sigaltstack(&stack, NULL) == 0);
    struct sigaction action = {.sa_handler = on_other_stack, .sa_flags = SA_ONSTACK};
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < 100; i++) raise(SIGUSR1);
    say("back from the other stack");
    return 0;
}

static int recurse(int depth) {
    volatile char room[64];
    room[0] = (char)depth;
    if (depth == 0) {
        allocate_before(4321);
        return 0;
    }
    return recurse(depth - 1) + room[0] * 0;
}

static int mode_deep(void) {
    for (int i = 0; i < 10; i++) recurse(20000);
    say("deep");
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} modes[] = {
    {"fork", mode_fork},
    {"fork-threads", mode_fork_threads},
    {"exec", mode_exec},
    {"child", mode_child},
    {"daemon", mode_daemon},
    {"vfork", mode_vfork},
    {"spawn", mode_spawn},
    {"plugin", mode_plugin},
    {"deep-bind", mode_deep_bind},
    {"_exit", mode_underscore_exit},
    {"abort", mode_abort},
    {"segfault", mode_segfault},
    {"signal", mode_signal},
    {"thread-exit", mode_thread_exit},
    {"exit-in-thread", mode_exit_in_thread},
    {"main-ends-first", mode_main_ends_first},
    {"many-threads", mode_many_threads},
    {"limit", mode_limit},
    {"atexit", mode_atexit},
    {"other-stack", mode_other_stack},
    {"deep", mode_deep},
};

int main(int argc, char **argv) {
    self = argv[0];
    REQUIRE(argc >= 2);
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    if (strcmp(argv[1], "fork-deep") == 0) return fork_deep(0);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(argv[1], modes[i].name) == 0) return modes[i].run();
    return 98;
}
