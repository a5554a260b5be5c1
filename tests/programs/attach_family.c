/* Starts processes in ways that are hard to follow, and prints their numbers:
 *
 *     grandchild   a child that starts another one at once; that one allocates
 *     vfork        a child that shares the program's memory, which goes on allocating, and then calls exec
 *     many N       N children at the same time, which allocate when the file $ALLOCATE appears
 *     short N      N children one after the other, which allocate at once and end */
#include "ledger.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void allocate(size_t size) {
    for (int i = 0; i < 10; i++) {
        void *block = malloc(size); /* @site child */
        ESCAPE(block);
    }
}

static void start_grandchild(void) {
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) {
            usleep(500000); /* whoever follows takes a moment */
            printf("%d\n", (int)getpid());
            fflush(stdout);
            allocate(1001);
            _exit(0);
        }
        wait(NULL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void *allocate_slowly(void *unused) {
    (void)unused;
    for (int i = 0; i < 400; i++) {
        void *block = malloc(1002); /* @site meanwhile */
        ESCAPE(block);
        usleep(1000);
    }
    return NULL;
}

static void start_sharing(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, allocate_slowly, NULL);
    pid_t child = vfork();
    if (child == 0) {
        usleep(300000);
        execl("/bin/true", "true", NULL);
        _exit(1);
    }
    REQUIRE(waitpid(child, NULL, 0) == child);
    pthread_join(thread, NULL);
}

static void start_many(int count) {
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        if (child == 0) {
            while (access(getenv("ALLOCATE"), F_OK) != 0) usleep(10000);
            allocate(1003);
            _exit(0);
        }
        REQUIRE(child > 0);
        printf("%d\n", (int)child);
    }
    fflush(stdout);
    while (wait(NULL) > 0) continue;
}

static void start_short(int count) {
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        if (child == 0) {
            for (int k = 0; k < 20; k++) allocate(1004);
            _exit(0);
        }
        REQUIRE(child > 0 && waitpid(child, NULL, 0) == child);
    }
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "grandchild") == 0) start_grandchild();
    if (argc == 2 && strcmp(argv[1], "vfork") == 0) start_sharing();
    if (argc == 3 && strcmp(argv[1], "many") == 0) start_many(atoi(argv[2]));
    if (argc == 3 && strcmp(argv[1], "short") == 0) start_short(atoi(argv[2]));
    return 0;
}
