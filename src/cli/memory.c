#include "cli/memory.h"

#include "model/problem.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void memory_is_short(void) {
    static _Atomic bool said;
    if (atomic_exchange(&said, true)) _exit(PROBLEM_FAILURE); /* the exit that is under way needs some, too */
    fputs("malloscope: out of memory\nhint: free some memory and try again\n", stderr);
    exit(PROBLEM_FAILURE);
}

static void *checked(void *memory) {
    if (!memory) memory_is_short();
    return memory;
}

void *allocate(size_t size) {
    return checked(calloc(1, size ? size : 1));
}

void *reallocate(void *memory, size_t size) {
    return checked(realloc(memory, size ? size : 1));
}

char *copy_text(const char *text) {
    return checked(strdup(text));
}

char *format_text(const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return checked(length < 0 ? NULL : text);
}

void free_text(char **text) {
    free(*text);
}
