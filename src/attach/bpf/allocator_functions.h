/* The functions of the allocators that attach knows, and where their arguments are. */
#ifndef MALLOSCOPE_ATTACH_BPF_ALLOCATOR_FUNCTIONS_H
#define MALLOSCOPE_ATTACH_BPF_ALLOCATOR_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* What a function does to the heap. */
enum function_role {
    ROLE_ALLOCATE, /* gives out a block */
    ROLE_RESIZE,   /* gives out a block in the place of another */
    ROLE_FREE,
    /* Not an allocator's: */
    ROLE_MODULES, /* called when libraries were loaded */
    ROLE_UNWIND,  /* called when an exception is thrown */
};

/* Whose name it is. */
enum function_family {
    FAMILY_LIBC,      /* malloc, …: the C library's or that of an allocator in its place */
    FAMILY_OPERATORS, /* C++ new and delete; they count only where they do not call malloc */
    FAMILY_JEMALLOC,  /* mallocx, …, and everything with a prefix */
    FAMILY_MIMALLOC,
    FAMILY_TCMALLOC,
    FAMILY_RUST, /* __rust_alloc, … and GlobalAlloc's methods: whatever the program's global allocator is */
    FAMILY_SYSTEM,
};

/* Arguments are numbered from 0 as in the source; -1 = there is none. */
struct function_kind {
    const char *name; /* without prefix */
    enum function_family family;
    enum function_role role;
    signed char size, factor, old, out;
    bool throws;    /* an exception may pass through it */
    bool is_method; /* of a Rust trait: which registers hold its arguments is to be found out */
};

/* What the function of this (linker's) name is; NULL if it is none of these. */
const struct function_kind *allocator_functions_find(const char *name);

#endif
