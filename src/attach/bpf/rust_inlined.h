/* Which functions of a Rust allocator the compiler has inlined somewhere, by the debug info. An inlined call has
 * no entry and no return that a probe could be put on (docs/design/attach.md, "Rust allocators"). */
#ifndef MALLOSCOPE_ATTACH_BPF_RUST_INLINED_H
#define MALLOSCOPE_ATTACH_BPF_RUST_INLINED_H

#include "attach/bpf/elf_code.h"

struct rust_inlined {
    const char **names; /* linkage names, owned by the file's debug info */
    size_t count;
};

/* Reads all of the debug info of the file. rust_inlined_clear frees the result. */
void rust_inlined_find(struct elf_code *elf, struct rust_inlined *ret_inlined);
void rust_inlined_clear(struct rust_inlined *inlined);

bool rust_inlined_has(const struct rust_inlined *inlined, const char *name);

#endif
