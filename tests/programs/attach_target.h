/* A program that is attached to while it runs, and keeps a log of what it allocates.
 *
 * It says "ready", waits for a line on standard input, works, prints its log and "done", and waits until
 * standard input is closed. Nothing here allocates. */
#ifndef ATTACH_TARGET_H
#define ATTACH_TARGET_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOG_MAX = 4096 };

/* 'a': a block was given out; 'f': it was freed; 'r': `old` became `address`. */
static struct {
    char what;
    uint64_t old, address, size;
} target_log[LOG_MAX];
static int target_log_count;

/* The compiler must not leave out a pair of malloc and free. */
#define keep(pointer) __asm__ volatile("" : "+r"(pointer) : : "memory")

static inline void note(char what, uint64_t old, const void *address, size_t size) {
    if (target_log_count == LOG_MAX) abort();
    target_log[target_log_count].what = what;
    target_log[target_log_count].old = old;
    target_log[target_log_count].address = (uint64_t)address;
    target_log[target_log_count++].size = size;
}

static inline void say(const char *format, ...) {
    static char line[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (write(STDOUT_FILENO, line, (size_t)length) != length) abort();
}

static inline void wait_until_attached(void) {
    char line[16];
    say("ready\n");
    if (read(STDIN_FILENO, line, sizeof line) <= 0) exit(1);
}

static inline void wait_until_detached(void) {
    char line[16];
    for (int i = 0; i < target_log_count; i++)
        say("%c %llu %llu %llu\n", target_log[i].what, (unsigned long long)target_log[i].old,
            (unsigned long long)target_log[i].address, (unsigned long long)target_log[i].size);
    say("done\n");
    while (read(STDIN_FILENO, line, sizeof line) > 0) continue;
}

#endif
