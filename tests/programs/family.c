/* family WHAT COUNT [ARGUMENT...]: has COUNT children, one after the other, which
 *
 *     exec    become ARGUMENT..., and nothing else
 *     kill    allocate 100 blocks, and are killed
 *     idle    allocate nothing that is sampled, and are killed
 *
 * or all at once, which
 *
 *     work    give up their privileges, allocate 20,000 blocks, and wait until standard input is closed
 *     stay    go on when this program has ended: they allocate 20,000 blocks, most of them after standard input is
 *             closed
 *
 *     become  has no children: fails to become a program that is not there, allocates COUNT blocks, and becomes
 *             ARGUMENT... */
#include "ledger.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 20000

__attribute__((noinline)) static void keep(int blocks) {
    for (int i = 0; i < blocks; i++) {
        char *block = malloc(40); /* @site kept */
        ESCAPE(block);
    }
}

static void wait_for_end_of_input(void) {
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
}

static void be_child(const char *what, char **arguments) {
    if (strcmp(what, "exec") == 0) {
        execv(arguments[0], arguments);
        _exit(127);
    }
    if (strcmp(what, "kill") == 0) keep(100);
    if (strcmp(what, "kill") == 0 || strcmp(what, "idle") == 0) raise(SIGKILL);
    if (strcmp(what, "work") == 0) {
        REQUIRE(setuid(65534) == 0);
        keep(BLOCKS);
        REQUIRE(write(STDOUT_FILENO, "ready\n", 6) == 6);
        wait_for_end_of_input();
        _exit(0);
    }
    keep(1);
    REQUIRE(write(STDOUT_FILENO, "ready\n", 6) == 6);
    wait_for_end_of_input();
    keep(BLOCKS - 1);
    _exit(0);
}

int main(int argc, char **argv) {
    REQUIRE(argc >= 3);
    int count = atoi(argv[2]);
    bool at_once = strcmp(argv[1], "work") == 0 || strcmp(argv[1], "stay") == 0;
    keep(1000);
    if (strcmp(argv[1], "become") == 0) {
        REQUIRE(execv("/no/such/program", argv + 3) < 0);
        keep(count);
        execv(argv[3], argv + 3);
        return 98;
    }
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) be_child(argv[1], argv + 3);
        if (!at_once) REQUIRE(waitpid(child, NULL, 0) == child);
    }
    if (strcmp(argv[1], "work") == 0)
        while (wait(NULL) > 0) {
        }
    return 0;
}
