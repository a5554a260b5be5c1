/* A library to preload: the FAIL_MEMORYth allocation of malloscope finds no memory, and with
 * FAIL_MEMORY_FROM=1 none after it does either. FAIL_MEMORY_COUNT=FILE gets the number of allocations at its
 * end. Programs that it starts are left alone. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_ulong count;
static unsigned long number;
static bool from;
static const char *file;

__attribute__((constructor)) static void begin(void) {
    if (strncmp(program_invocation_short_name, "malloscope", 10) != 0) return;
    const char *text = getenv("FAIL_MEMORY");
    from = getenv("FAIL_MEMORY_FROM") != NULL;
    file = getenv("FAIL_MEMORY_COUNT");
    atomic_store(&count, 0);
    number = text ? strtoul(text, NULL, 10) : 0;
}

__attribute__((destructor)) static void end(void) {
    char text[32];
    int length = snprintf(text, sizeof text, "%lu\n", atomic_load(&count));
    int descriptor = file ? open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (descriptor < 0) return;
    if (write(descriptor, text, (size_t)length) != length) _exit(123);
    close(descriptor);
}

static bool fails(void) {
    unsigned long now = atomic_fetch_add(&count, 1) + 1;
    if (!number || now < number || (now > number && !from)) return false;
    errno = ENOMEM;
    return true;
}

/* None of these calls another by its public name, which may be a recorder's in front of it. */

static void *resize(void *block, size_t size) {
    return size && fails() ? NULL : __libc_realloc(block, size);
}

static void *aligned(size_t alignment, size_t size) {
    return fails() ? NULL : __libc_memalign(alignment, size);
}

void *malloc(size_t size) {
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t number_of, size_t size) {
    return fails() ? NULL : __libc_calloc(number_of, size);
}

void *realloc(void *block, size_t size) {
    return resize(block, size);
}

void *reallocarray(void *block, size_t number_of, size_t size) {
    size_t whole;
    if (__builtin_mul_overflow(number_of, size, &whole)) {
        errno = ENOMEM;
        return NULL;
    }
    return resize(block, whole);
}

void *memalign(size_t alignment, size_t size) {
    return aligned(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return aligned(alignment, size);
}

int posix_memalign(void **ret_block, size_t alignment, size_t size) {
    void *block = aligned(alignment, size);
    if (!block) return ENOMEM;
    *ret_block = block;
    return 0;
}
