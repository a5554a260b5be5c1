/* Leaks beside memory that only looks like one: tables from the start, a cache that grows and then evicts, work
 * that is freed.
 *
 * The argument says how it ends: "exit", "kill" (itself) or "run" (on, until it is ended), after "ready\n".
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STEPS      1000
#define WORK       200
#define TABLES     100
#define CACHE_SIZE 3000

static void *volatile tables[TABLES], *volatile cache[CACHE_SIZE], *volatile lost;

__attribute__((noinline)) static void start_up_tables(void) {
    for (int i = 0; i < TABLES; i++) tables[i] = malloc(8192);
}

/* Full after a third of the run. */
__attribute__((noinline)) static void growing_cache(void) {
    static size_t next;
    for (int i = 0; i < 9; i++) {
        free(cache[next % CACHE_SIZE]);
        cache[next++ % CACHE_SIZE] = malloc(400);
    }
}

/* One in 1,000 is not freed. */
__attribute__((noinline)) static void slow_leak(void) {
    static unsigned count;
    for (int i = 0; i < WORK; i++) {
        void *volatile block = malloc(1000);
        if (++count % 1000)
            free(block);
        else
            lost = block;
    }
}

__attribute__((noinline)) static void leak_at_exit(void) {
    for (int i = 0; i < 60; i++) lost = malloc(1500);
}

static void work(void) {
    growing_cache();
    slow_leak();
    nanosleep(&(struct timespec){.tv_nsec = 1500000}, NULL);
}

int main(int count, char **arguments) {
    const char *end = count > 1 ? arguments[1] : "exit";
    start_up_tables();
    for (int i = 0; i < STEPS; i++) work();
    if (strcmp(end, "exit") == 0) leak_at_exit();
    if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
    if (strcmp(end, "kill") == 0) raise(SIGKILL);
    while (strcmp(end, "run") == 0) work();
    return 0;
}
