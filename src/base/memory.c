#include "base/memory.h"

#include "base/problem.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    _Atomic bool said;
    int status;
    void (*restore)(void);
} ending = {.status = PROBLEM_FAILURE};

void memory_is_short(void) {
    if (atomic_exchange(&ending.said, true)) _exit(ending.status); /* what is under way needs some, too */
    if (ending.restore) ending.restore();
    fputs("malloscope: out of memory\nhint: free some memory and try again\n", stderr);
    exit(ending.status);
}

void memory_short_ends_with(int status) {
    ending.status = status;
}

void memory_short_restores(void (*restore)(void)) {
    ending.restore = restore;
}

void memory_move_large_blocks(void) {
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
}

static void *checked(void *memory) {
    if (!memory) memory_is_short();
    return memory;
}

void *memory_allocate(size_t size) {
    return checked(calloc(1, size ? size : 1));
}

void *memory_reallocate(void *memory, size_t size) {
    return checked(realloc(memory, size ? size : 1));
}

char *memory_copy_text(const char *text) {
    return checked(strdup(text));
}

void memory_set_variable(const char *name, const char *value) {
    if (setenv(name, value, 1) != 0) memory_is_short();
}

char *memory_format_text(const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return checked(length < 0 ? NULL : text);
}

void memory_free_text(char **text) {
    free(*text);
}
