/* fork_in_storm THREADS CHILDREN: threads allocate and free without a pause. A timer's handler interrupts one of them
 * anywhere and forks; the child returns into what was interrupted, often the recorder's work, goes on for a while and
 * ends. Prints what the threads have allocated, and how many children did not end well. */
#define _GNU_SOURCE
#include "ledger.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t is_child;
static _Atomic int children, failures, over;
static _Atomic long allocated;
static int children_most;

/* The next signal comes once, after a time that differs. */
static void set_timer(void) {
    struct itimerval timer = {{0, 0}, {0, 300 + children * 131 % 1999}};
    REQUIRE(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void fork_here(int signal) {
    (void)signal;
    if (is_child || over) return;
    pid_t pid =
        _Fork(); /* fork would wait for locks of the allocator, which the interrupted thread may hold */
    int status = 0;
    if (pid == 0) {
        is_child = 1;
        return;
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) failures++;
    if (++children >= children_most) over = 1;
    set_timer();
}

static void *one_block(size_t size) {
    void *block = malloc(size); /* @site storm */
    REQUIRE(block);
    memset(block, 3, size);
    return block;
}

static void *storm(void *unused) {
    (void)unused;
    void *blocks[64] = {NULL};
    long count = 0;
    int rest = 500; /* what a child does */
    for (unsigned i = 0; !over && rest > 0; i++) {
        rest -= is_child != 0;
        free(blocks[i % 64]);
        blocks[i % 64] = one_block(16 + i * 37 % 900);
        count++;
        if (i % 5 == 0) {
            blocks[i % 64] = realloc(blocks[i % 64], 2000); /* @site storm */
            count++;
        }
    }
    for (int i = 0; i < 64; i++) free(blocks[i]);
    if (is_child) _exit(0);
    allocated += count;
    return NULL;
}

int main(int argc, char **argv) {
    REQUIRE(argc == 3);
    int count = atoi(argv[1]);
    children_most = atoi(argv[2]);
    struct sigaction action = {.sa_handler = fork_here, .sa_flags = SA_RESTART};
    REQUIRE(sigaction(SIGALRM, &action, NULL) == 0);
    pthread_t threads[16];
    REQUIRE(count >= 1 && count <= 16);
    set_timer();
    for (int i = 1; i < count; i++) REQUIRE(pthread_create(&threads[i], NULL, storm, NULL) == 0);
    storm(NULL);
    for (int i = 1; i < count; i++) pthread_join(threads[i], NULL);
    printf("{\"pid\": %d, \"children\": %d, \"failures\": %d, \"allocated\": %ld}\n", getpid(), children,
        failures, allocated);
    return 0;
}
