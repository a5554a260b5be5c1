/* Allocates, and starts three processes that allocate themselves; prints their numbers. */
#include "ledger.h"

#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 3

static void child(int number) {
    usleep(300000); /* whoever follows takes a moment to notice */
    for (int i = 0; i < 10; i++) {
        void *block = malloc(1000 + (size_t)number); /* @site child */
        ESCAPE(block);
    }
    _exit(0);
}

int main(void) {
    for (int i = 0; i < 7; i++) {
        void *block = malloc(500); /* @site parent */
        ESCAPE(block);
    }
    for (int i = 0; i < CHILDREN; i++) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) child(i);
        REQUIRE(pid > 0 && waitpid(pid, NULL, 0) == pid);
        printf("%d\n", (int)pid);
    }
    return 0;
}
