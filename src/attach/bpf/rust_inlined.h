/* Which functions of a Rust allocator the compiler has put inline somewhere, by the debug information. Such
 * calls have no beginning and no end that a probe could be put on: docs/architecture.md. */
#ifndef MALLOSCOPE_ATTACH_BPF_RUST_INLINED_H
#define MALLOSCOPE_ATTACH_BPF_RUST_INLINED_H

#include "attach/bpf/elf_code.h"

struct rust_inlined {
    const char **names; /* linker's names, owned by the elf */
    size_t count;
};

/* Goes through all of the elf's debug information. Ended by rust_inlined_clear. */
void rust_inlined_find(struct elf_code *elf, struct rust_inlined *ret_inlined);
void rust_inlined_clear(struct rust_inlined *inlined);

bool rust_inlined_has(const struct rust_inlined *inlined, const char *name);

#endif
