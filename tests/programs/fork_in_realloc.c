/* A signal handler forks while the allocator copies a large block. In the child the handler returns, so that the
 * child goes on with the realloc that its parent had begun. Prints how many children did not end well. */
#define _GNU_SOURCE
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 20
#define LARGE    ((size_t)24 << 20)

static volatile sig_atomic_t is_copying, is_child, children, failures;

static void fork_here(int number) {
    (void)number;
    if (is_child || !is_copying || children == CHILDREN) return;
    pid_t pid = fork();
    is_child = pid == 0;
    if (pid <= 0) return;
    int status = 0;
    waitpid(pid, &status, 0);
    children++;
    if (status) failures++;
}

static void *resized(void) {
    char *block = malloc(LARGE);
    char *volatile behind = malloc(64); /* so that there is no room to grow in place */
    memset(block, 1, LARGE);
    is_copying = 1;
    block = realloc(block, LARGE + LARGE / 4);
    is_copying = 0;
    free(behind);
    return block;
}

int main(void) {
    struct sigaction action = {.sa_handler = fork_here, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 3000}, {0, 3000}};
    mallopt(M_MMAP_THRESHOLD, 1 << 30); /* so that realloc copies the block, and does not remap it */
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &often, NULL)) return 1;
    while (children < CHILDREN) {
        char *block = resized();
        if (!block || block[LARGE - 1] != 1) return 2;
        free(block);
        if (!is_child) continue;
        for (size_t size = 0; size < 1000; size++) free(malloc(size));
        return 0;
    }
    printf("%d of %d children failed\n", (int)failures, CHILDREN);
    return 0;
}
