/* Where a symbol is defined, relative to this library, in the dynamic linker's search order.
 *
 *     executable ─ libraries preloaded before us ─ this library ─ the program's libraries ─ the C library
 *     └──────────────── before us ─────────────┘                └───────────── behind us ──────────────┘
 *
 * A function that is defined before us is the one that the whole program uses. If this library was opened late,
 * by dlopen, all of the program is before us.
 *
 * These functions read the linker's list of loaded objects without its lock. They may be called at the start,
 * when there is one thread or the linker is loading this library; later only within dl_iterate_phdr, which holds
 * the lock. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_SEARCH_ORDER_H
#define MALLOSCOPE_RECORD_INTERCEPT_SEARCH_ORDER_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* A function that the C library alone defines. */
#define SEARCH_ORDER_LIBC "gnu_get_libc_version"

/* The first definition of `name` before us, or NULL.
 *
 * dlsym is used for none of these. A preloaded library may have put its own dlsym in place of libc's; then "next"
 * means what follows that library, and a malloc that follows it may be ours. dlsym allocates, and takes locks that
 * the interrupted caller of malloc may hold. It passes by what is defined under an old version only (glibc's
 * libc_malloc_debug.so), though the program's calls reach it. And it finds what is no definition: an executable at
 * fixed addresses has symbols for the functions of libraries whose addresses it takes. */
void *search_order_before(const char *name);
bool search_order_is_before(const char *name);

/* The first definition of `name` behind us, whatever its version, or NULL. */
void *search_order_behind(const char *name);

/* Whether this library was opened late. */
bool search_order_is_late(void);

/* What the program would reach by `name` without us, or NULL. */
void *search_order_next(const char *name);

/* The C library's own function, whoever else defines one of that name. If it has none: as search_order_next. */
void *search_order_libc(const char *name);

/* The size of the function or object `name` at `address`; 0: not known. */
uint64_t search_order_size(const char *name, const void *address);

/* Our own symbol. */
const ElfW(Sym) * search_order_own_symbol(const char *name);

#endif
