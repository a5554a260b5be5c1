#include "cli/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void memory_is_short(void) {
    fputs("malloscope: out of memory\n", stderr);
    exit(1);
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
