#include "hook/operators.h"

#include "hook/real.h"

#include <dlfcn.h>
#include <stdlib.h>

void *hook_new_by_malloc(size_t size);
void *hook_new_by_program(size_t size);
void *hook_new_array_by_program(size_t size);
void hook_delete_by_free(void *block);
void *hook_new_failed(size_t size);

/* What allocates in the first two forms, once the countdown has been charged. */
void *(*hook_new_plain[2])(size_t) = {hook_new_by_malloc, hook_new_by_malloc};

#define BY_FREE(form, name) hook_delete_by_free,
void (*hook_delete[DELETE_FORMS])(void *) = {OPERATORS_DELETE(BY_FREE)};
#undef BY_FREE

typedef void *(*new_function)(size_t, size_t, size_t); /* the forms take one to three of these */

new_function hook_next_new[NEW_FORMS];
static enum operators whose_they_are;

#define NAME(form, name) #name,
static const char *const new_name[] = {OPERATORS_NEW(NAME)};
static const char *const delete_name[] = {OPERATORS_DELETE(NAME)};
#undef NAME

void operators_are(enum operators whose) {
    whose_they_are = whose;
    if (whose == BY_MALLOC) return;
    for (unsigned form = 0; form < NEW_FORMS; form++)
        *(void **)&hook_next_new[form] = dlsym(RTLD_NEXT, new_name[form]);
    hook_new_plain[0] = hook_new_by_program;
    hook_new_plain[1] = hook_new_array_by_program;
    for (unsigned form = 0; form < DELETE_FORMS; form++)
        *(void **)&hook_delete[form] = dlsym(RTLD_NEXT, delete_name[form]);
}

enum operators operators_whose(void) {
    return whose_they_are;
}

void *operators_next(unsigned form, size_t size, size_t second, size_t third) {
    return hook_next_new[form](size, second, third);
}

/* The C++ library may have been loaded for a plug-in alone: then it is not behind us in the order of symbols.
 */
static new_function find_failing(unsigned form) {
    new_function function;
    *(void **)&function = dlsym(RTLD_NEXT, new_name[form]);
    static const char *const libraries[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
    for (size_t i = 0; !function && i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_NOLOAD | RTLD_LAZY);
        if (library) *(void **)&function = dlsym(library, new_name[form]);
    }
    return function;
}

void *operators_fail(unsigned form, size_t size, size_t second, size_t third) {
    new_function next = find_failing(form);
    if (next) return next(size, second, third);
    if (form & 2) return NULL; /* the nothrow forms */
    abort();                   /* a C++ program without a C++ library cannot throw */
}

void *hook_new_failed(size_t size) {
    return operators_fail(0, size, 0, 0);
}
