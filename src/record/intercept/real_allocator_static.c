/* The real allocator of a program that is linked statically. The linker's options --wrap=malloc and so on put the
 * hooks in front of it: it binds calls of malloc to __wrap_malloc, and calls of __real_malloc to malloc. Without
 * these options the program does not link, which its author notices. */
#include "platform/calls.h"
#include "record/intercept/nested_calls.h"
#include "record/intercept/real_allocator.h"

#include <limits.h>
#include <malloc.h>
#include <stdlib.h>

#define DECLARE(type, name, parameters) extern type __real_##name parameters;
REAL_FUNCTIONS(DECLARE)
extern void *__libc_malloc(size_t) __attribute__((weak));

#define ADDRESS(type, name, parameters) .name = __real_##name,
struct real_allocator real_allocator = {REAL_FUNCTIONS(ADDRESS)};

/* False: --wrap does not touch calls within one object file, and an allocator's calls of its own functions are
 * such calls. */
bool nested_calls_are_possible;

bool nested_calls_is_inside(const struct unwind_registers *caller) {
    (void)caller;
    return false;
}

bool real_allocator_ready(void) {
    return true;
}

const char *real_allocator_module(void) {
    static char path[PATH_MAX];
    long length = path[0] ? 0 : call_readlink("/proc/self/exe", path, sizeof path - 1);
    return length < 0 ? "" : path;
}

bool real_allocator_bears_marks(void) {
    return real_allocator.malloc == __libc_malloc;
}

bool real_allocator_is_late(void) {
    return false;
}

bool real_allocator_is_shadowed(void) {
    return false;
}
