/* The allocator behind the hooks in a program that is linked statically. The linker puts the hooks in front
 * of it (--wrap=malloc and so on): calls of malloc arrive at __wrap_malloc, and __real_malloc is the malloc
 * that they meant. Without these options the program does not link: better than to record nothing. */
#include "record/intercept/nested_calls.h"
#include "record/intercept/real_allocator.h"

#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#define DECLARE(type, name, parameters) extern type __real_##name parameters;
REAL_FUNCTIONS(DECLARE)
extern void *__libc_malloc(size_t) __attribute__((weak));

#define ADDRESS(type, name, parameters) .name = __real_##name,
struct real_allocator real_allocator = {REAL_FUNCTIONS(ADDRESS)};

bool nested_calls_are_possible; /* the linker leaves calls alone that an object file answers itself */

bool nested_calls_is_inside(const struct unwind_registers *caller) {
    (void)caller;
    return false;
}

bool real_allocator_ready(void) {
    return true;
}

const char *real_allocator_module(void) {
    static char path[4096];
    ssize_t length = path[0] ? 0 : readlink("/proc/self/exe", path, sizeof path - 1);
    return length < 0 ? "" : path;
}

bool real_allocator_is_libc(void) {
    return real_allocator.malloc == __libc_malloc;
}

bool real_allocator_is_late(void) {
    return false;
}

bool real_allocator_is_shadowed(void) {
    return false;
}
