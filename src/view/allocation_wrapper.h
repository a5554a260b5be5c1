/* Allocation wrappers: functions between the program's code and malloc. They are no answer to the question "which line
 * allocated this?": operator new, allocators, the standard containers, strdup, xmalloc.
 *
 * Functions are recognized by the skeletons of their names: without template arguments, parameters and return type,
 * and with Rust's `<Type as Trait>::method` as `Type::method`. */
#ifndef MALLOSCOPE_VIEW_ALLOCATION_WRAPPER_H
#define MALLOSCOPE_VIEW_ALLOCATION_WRAPPER_H

#include <stddef.h>

enum allocation_wrapper {
    WRAPPER_NOT,
    WRAPPER_ALWAYS,    /* never a site, unless the stack has no other frame */
    WRAPPER_IF_NAMED,  /* no site if the first frame outside of all wrappers has a name */
    WRAPPER_IF_SOURCE, /* no site if the first frame outside of all wrappers has a source line */
};

/* Which kind of wrapper the function is. `module` is the path of the file that it is in, or NULL. */
enum allocation_wrapper allocation_wrapper_of(const char *function, const char *module);

/* Writes the skeleton of a name into `skeleton`, which has room for `size` bytes. What does not fit is cut off. */
void allocation_wrapper_skeleton(const char *function, char *skeleton, size_t size);

#endif
