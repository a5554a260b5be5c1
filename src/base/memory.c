#include "base/memory.h"

#include "base/problem.h"

#include <malloc.h>
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

static size_t product(size_t count, size_t size) {
    size_t whole;
    if (__builtin_mul_overflow(count, size, &whole)) memory_is_short();
    return whole;
}

void *memory_allocate(size_t size) {
    return checked(memory_try_allocate(size));
}

void *memory_allocate_array(size_t count, size_t size) {
    return memory_allocate(product(count, size));
}

void *memory_try_allocate(size_t size) {
    return calloc(1, size ? size : 1);
}

void *memory_reallocate(void *block, size_t size) {
    return checked(realloc(block, size ? size : 1));
}

void *memory_reallocate_array(void *block, size_t count, size_t size) {
    return memory_reallocate(block, product(count, size));
}

void *memory_copy(const void *bytes, size_t size) {
    void *copy = memory_reallocate(NULL, size);
    return size ? memcpy(copy, bytes, size) : copy;
}

char *memory_copy_text(const char *text) {
    return checked(strdup(text));
}

char *memory_copy_text_part(const char *text, size_t length) {
    return checked(strndup(text, length));
}

char *memory_format_arguments(const char *format, va_list arguments) {
    char *text = NULL;
    return checked(vasprintf(&text, format, arguments) < 0 ? NULL : text);
}

char *memory_format_text(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = memory_format_arguments(format, arguments);
    va_end(arguments);
    return text;
}

FILE *memory_stream_open(char **text, size_t *size) {
    return checked(open_memstream(text, size));
}

void memory_stream_close(FILE *stream) {
    bool failed = ferror(stream);
    if (fclose(stream) != 0 || failed) memory_is_short();
}

void memory_set_variable(const char *name, const char *value) {
    if (setenv(name, value, 1) != 0) memory_is_short();
}

void memory_free_text(char **text) {
    free(*text);
}
