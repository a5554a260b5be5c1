/* Symbolization: from an address in a recorded program to function, source file and line, inlined calls included.
 *
 * The resolver finds the files of the model's modules by path and build-id and reads their ELF symbol tables and
 * DWARF debug info with libdw. It never reads the memory of a program. The resolver owns its results; they are
 * good until it is freed. */
#ifndef MALLOSCOPE_SYMBOL_SYMBOL_H
#define MALLOSCOPE_SYMBOL_SYMBOL_H

#include "model/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One frame of the source. An address stands for several where calls were inlined. */
struct symbol {
    const char *function; /* demangled; never NULL: "[libx.so+0x1234]" if nothing is known; "[vdso]" */
    const char *linkage;  /* linkage name (mangled), or NULL */
    const char *file;     /* of the source: an absolute path, or as the compiler was given it; or NULL */
    int line;             /* 0: not known */
    int function_line;    /* where the function begins; 0: not known */
    bool inlined;         /* the call of this function was inlined into the next frame's function */
    bool interpreted;     /* a Python function */
    /* For a label that the program has set (a scope, a thread's name): the plain text of it, while `function` is
     * "[scope load level]". NULL for code. */
    const char *given;
};

/* What an address stands for: `frames[0]` is the innermost. */
struct symbol_list {
    const struct symbol *frames;
    size_t count;                      /* at least 1 */
    const struct model_module *module; /* NULL if no module covers the address */
    /* The link-time address of the byte that was looked up, which lies inside the call instruction: what
     * `addr2line -e` takes. If the module's file was not found: the offset of the byte in that file. If there is no
     * module: the recorded address. */
    uint64_t module_address;
};

struct resolver;

/* Called from time to time during long work. `done` of `all` addresses are resolved. */
typedef void (*symbol_progress)(void *context, size_t done, size_t all);

/* Freed by resolver_free. The model must outlive it. */
struct resolver *resolver_new(const struct model *model);
void resolver_free(struct resolver *resolver);

/* Looks for files and debug files below `folder` first, as if that were "/": for a recording of another machine
 * or of a container's image. To be called before the first look-up. */
void resolver_set_sysroot(struct resolver *resolver, const char *folder);

/* Uses the cache in this folder (symbol_cache.h): looks there first, and stores there what was found in debug
 * info. To be called before the first look-up. */
void resolver_use_cache(struct resolver *resolver, const char *folder);

/* Goes on with `model`, a later reading of the same recording of one process. What was resolved stays, so only
 * new addresses have to be looked up. The former model is not used any more. If `model` is another recording:
 * returns false and changes nothing. */
bool resolver_follow(struct resolver *resolver, const struct model *model);

/* Resolves all addresses of the model's stacks at once, on all processors. Look-ups after that are cheap. */
void resolver_resolve_all(struct resolver *resolver, symbol_progress progress, void *context);

/* Resolves the frame word `frames[index]` of a stack. Native frames are return addresses, also the leaf: the byte
 * before the address is looked up, which lies inside the call. Frames that are not native (FRAME_CUT, ...) give
 * one symbol with a name such as "[cut]" and no module. Never fails. */
struct symbol_list resolver_look_up(
    struct resolver *resolver, const struct model_stack *stack, uint32_t index);

/* A symbol for a label that the program has set: "[heap textures]". Equal labels give the same pointer. */
const struct symbol *resolver_label(struct resolver *resolver, const char *what, const char *name);

/* All that was resolved, as bytes for an archive (model/archive.h): a symbol store (symbol_store.h) with frame
 * words as keys and the model's processes as spaces. The caller frees it. NULL if it is too much for the format. */
void *resolver_pack(struct resolver *resolver, size_t *ret_size, size_t *ret_count);

/* What the user should know about the names that were found so far, one sentence a line, or NULL. For example:
 * "libx.so has changed since the recording: its functions are shown as addresses". Owned by the resolver. */
const char *resolver_warning(struct resolver *resolver);

/* A text that says which names there are for a module and from which file, or why there are none. Owned by the
 * resolver. */
const char *resolver_describe(struct resolver *resolver, const struct model_module *module);

/* Whether a file was needed that does not exist here, or that differs here from the one that was recorded. */
bool resolver_lacks_files(struct resolver *resolver);

#endif
