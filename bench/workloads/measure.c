/* Runs a command and writes down what it took.
 *
 *     measure RESULT [NAME=VALUE]... -- COMMAND ARGUMENT...
 *
 * RESULT gets "wall_ns user_ns system_ns peak_kib status". A small program of its own, because a child's peak
 * memory is never less than that of the process it was forked from, and the driver is bigger than some of the
 * programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
    int command = 2;
    while (command < argc && strcmp(argv[command], "--")) command++;
    if (command + 1 >= argc) {
        fprintf(stderr, "usage: measure RESULT [NAME=VALUE]... -- COMMAND ARGUMENT...\n");
        return 2;
    }
    long long begin = now_ns();
    pid_t child = fork();
    if (child == 0) {
        for (int i = 2; i < command; i++) putenv(argv[i]);
        execvp(argv[command + 1], argv + command + 1);
        perror(argv[command + 1]);
        _exit(127);
    }
    int status;
    struct rusage used;
    if (child < 0 || wait4(child, &status, 0, &used) != child) {
        perror("measure");
        return 1;
    }
    long long wall = now_ns() - begin;
    FILE *result = fopen(argv[1], "we");
    if (!result) {
        perror(argv[1]);
        return 1;
    }
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    fprintf(result, "%lld %lld %lld %ld %d\n", wall,
        used.ru_utime.tv_sec * 1000000000LL + used.ru_utime.tv_usec * 1000LL,
        used.ru_stime.tv_sec * 1000000000LL + used.ru_stime.tv_usec * 1000LL, used.ru_maxrss, code);
    return fclose(result) ? 1 : 0;
}
