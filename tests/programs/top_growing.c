/* top_growing [CHILDREN [SECONDS]]: holds 2 MiB, allocates for a moment, and leaks 64 KiB ten times a second, from
 * functions of their own. On SIGUSR1 it forks a child that does the same in functions of its own; on SIGUSR2 it
 * becomes another program, this one with the argument "again"; on SIGTERM it ends. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t wanted;

static void on_signal(int number) {
    wanted = number;
}

static void *volatile kept;

__attribute__((noinline)) static void hold(void) {
    kept = malloc(2 << 20); /* @site hold */
    memset(kept, 1, 2 << 20);
}

__attribute__((noinline)) static void leak(void) {
    kept = malloc(64 << 10); /* @site leak */
}

__attribute__((noinline)) static void leak_in_child(void) {
    kept = malloc(32 << 10); /* @site leak_in_child */
}

__attribute__((noinline)) static void for_a_moment(void) {
    void *volatile block = malloc(1000); /* @site for_a_moment */
    free(block);
}

__attribute__((noinline)) static void serve(void (*work)(void)) {
    work();
    for (int i = 0; i < 100; i++) for_a_moment();
}

static void wait_a_little(void) {
    struct timespec moment = {0, 100000000};
    nanosleep(&moment, NULL);
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (argc < 2) hold();
    void (*work)(void) = leak;
    for (; wanted != SIGTERM; wait_a_little()) {
        int now = wanted;
        wanted = 0;
        if (now == SIGTERM) break;
        if (now == SIGUSR1 && fork() == 0) work = leak_in_child;
        if (now == SIGUSR2) execl("/proc/self/exe", argv[0], "again", (char *)NULL);
        serve(work);
    }
    return 0;
}
