/* The functions of the allocators that attach knows by name, and where their arguments are. */
#ifndef MALLOSCOPE_ATTACH_BPF_ALLOCATOR_FUNCTIONS_H
#define MALLOSCOPE_ATTACH_BPF_ALLOCATOR_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* What a function does to the heap. */
enum function_role {
    ROLE_ALLOCATE, /* returns a new block */
    ROLE_RESIZE,   /* returns a block that replaces another one */
    ROLE_FREE,
    /* Not of an allocator: */
    ROLE_MODULES, /* the dynamic linker calls it when it has changed its list of libraries */
    ROLE_UNWIND,  /* is called when an exception is thrown */
};

/* The allocator or language that a function's name belongs to. */
enum function_family {
    FAMILY_LIBC,      /* malloc, …: of the C library, or of an allocator that replaces it */
    FAMILY_OPERATORS, /* C++ operators new and delete */
    FAMILY_JEMALLOC,  /* mallocx, …, and malloc, … with a prefix of jemalloc's */
    FAMILY_MIMALLOC,
    FAMILY_TCMALLOC,
    FAMILY_RUST,   /* __rust_alloc, …, and the methods of the trait GlobalAlloc */
    FAMILY_SYSTEM, /* of no allocator */
};

/* What is known about a function. Its arguments are given by their number in the source, from 0 on; -1: it has no
 * such argument. */
struct function_kind {
    const char *name; /* without a prefix of jemalloc's */
    enum function_family family;
    enum function_role role;
    signed char size;   /* bytes that are asked for */
    signed char factor; /* by which `size` is multiplied: calloc */
    signed char old;    /* the block that is freed or resized */
    signed char out;    /* where the new block's address is stored: posix_memalign */
    bool throws;        /* a C++ exception may leave it */
    bool is_method;     /* of a Rust trait: which registers hold its arguments has to be found out */
};

/* What is known about the function with this linkage name, or NULL if it is not a known one. */
const struct function_kind *allocator_functions_find(const char *name);

#endif
