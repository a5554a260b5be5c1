/* Symbols: from an address in a recorded program to function, file and line, inlined calls included.
 *
 * The resolver works from the model's modules (path and build-id), never from the memory of a program, and
 * reads ELF and DWARF with libdw. Results are owned by the resolver and stay good until it is freed. */
#ifndef MALLOSCOPE_SYMBOL_SYMBOL_H
#define MALLOSCOPE_SYMBOL_SYMBOL_H

#include "model/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One source-level frame. Several belong to one address where calls were inlined there. */
struct symbol {
    const char *function; /* demangled; never NULL: "[libx.so+0x1234]" if nothing is known; "[vdso]" */
    const char *linkage;  /* as the linker knows it (mangled), or NULL */
    const char *file;     /* absolute or as compiled, or NULL */
    int line;             /* 0 = unknown */
    int function_line;    /* where the function starts, 0 = unknown */
    bool inlined;         /* this frame was inlined into the next one */
    bool interpreted;     /* a function of the Python interpreter's program */
    /* NULL for code. Of what the program named itself, that name: `function` is then "[scope load level]". */
    const char *given;
};

/* What an address stands for: `frames[0]` is the innermost. */
struct symbol_list {
    const struct symbol *frames;
    size_t count;                      /* at least 1 */
    const struct model_module *module; /* NULL if no module covers the address */
    /* The byte that was looked up, inside the call, as linked into the module (ELF virtual address, what
     * `addr2line -e` takes). If the file is not known: its offset in the file. No module: as recorded. */
    uint64_t module_address;
};

struct resolver;

/* Called now and then during long work, with what has been done and what there is to do. */
typedef void (*symbol_progress)(void *context, size_t done, size_t all);

int resolver_new(const struct model *model, struct resolver **ret_resolver, struct problem *problem);
void resolver_free(struct resolver *resolver);

/* Looks for files and debug files below `folder` first, as if that were "/": for a recording from another
 * machine or image. To be called before anything is looked up. */
void resolver_set_sysroot(struct resolver *resolver, const char *folder);

/* Keeps what is found in debug info in this folder (symbol_cache.h), and looks there first. To be called
 * before anything is looked up. */
void resolver_use_cache(struct resolver *resolver, const char *folder);

/* Goes on with `model`: the same recording, of one process, read again later. What was resolved stays, so
 * only what is new in it has to be looked up. The former model is not used any more. False, and nothing is
 * changed, if it is another recording. */
bool resolver_follow(struct resolver *resolver, const struct model *model);

/* Resolves all addresses of the model's stacks at once; later look-ups are then cheap. */
void resolver_resolve_all(struct resolver *resolver, symbol_progress progress, void *context);

/* Resolves the frame word `frames[index]` of a stack: native frames are return addresses, the leaf too, and
 * are looked up one byte earlier. Frames that are not native (FRAME_CUT, ...) give one symbol with a name
 * such as "[cut]" and no module. Never fails. */
struct symbol_list resolver_look_up(
    struct resolver *resolver, const struct model_stack *stack, uint32_t index);

/* A frame for something that the program named: "[heap textures]". Equal ones are one. */
const struct symbol *resolver_label(struct resolver *resolver, const char *what, const char *name);

/* All that was resolved, as bytes for an archive (model/archive.h): a store of frame words, with the
 * processes of the model as spaces. The caller frees it. NULL if it is too much for the format. */
void *resolver_pack(struct resolver *resolver, size_t *ret_size, size_t *ret_count);

/* What the user should know about the names found so far, one sentence a line, or NULL: for example
 * "libx.so has changed since the recording: its functions are shown as addresses". Owned by the resolver. */
const char *resolver_warning(struct resolver *resolver);

/* What names there are for a module and from which file, or why there are none. Owned by the resolver. */
const char *resolver_describe(struct resolver *resolver, const struct model_module *module);

/* Whether a file was wanted that is not here, or is another one here. */
bool resolver_lacks_files(struct resolver *resolver);

#endif
