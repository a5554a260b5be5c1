/* Plumbing: the functions between a line of the program and malloc that nobody means when asking "who
 * allocated this?": operator new, allocators, the standard containers, strdup, xmalloc.
 *
 * Names are compared as skeletons: without template arguments, parameters and return type, and with Rust's
 * `<Type as Trait>::method` as `Type::method`. */
#ifndef MALLOSCOPE_VIEW_ALLOCATION_WRAPPER_H
#define MALLOSCOPE_VIEW_ALLOCATION_WRAPPER_H

#include <stddef.h>

enum allocation_wrapper {
    WRAPPER_NOT,
    WRAPPER_ALWAYS,    /* never a site while there is a frame outside it */
    WRAPPER_IF_NAMED,  /* a site unless a frame outside has a name */
    WRAPPER_IF_SOURCE, /* a site unless the first frame outside has a source line */
};

/* `module` is the path of the file that holds the function, or NULL. */
enum allocation_wrapper allocation_wrapper_of(const char *function, const char *module);

/* Writes the skeleton of `function`, cut to `size`. */
void allocation_wrapper_skeleton(const char *function, char *skeleton, size_t size);

#endif
