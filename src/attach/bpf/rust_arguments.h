/* Which registers hold the arguments of a Rust allocator's methods.
 *
 * Only the program itself calls these methods, so the compiler passes their arguments as it likes: an unused
 * `self` is not passed, and which word of a layout comes first depends on the compiler's version. The debug info
 * tells the registers. Without debug info they follow from the code of callers whose own arguments are known:
 *
 *     __rust_alloc:  mov %rdi,%rax      __rust_alloc has the size in rdi, by a fixed rule
 *                    mov %rsi,%rdi
 *                    mov %rax,%rsi
 *                    jmp alloc          so alloc has the size in rsi */
#ifndef MALLOSCOPE_ATTACH_BPF_RUST_ARGUMENTS_H
#define MALLOSCOPE_ATTACH_BPF_RUST_ARGUMENTS_H

#include "attach/bpf/allocator_functions.h"
#include "attach/bpf/elf_code.h"

/* Replaces the numbers of the arguments in `kind`, which are those of the source, by those of the registers that
 * hold them. False if the debug info does not tell all of them; `kind` is unchanged then. */
bool rust_arguments_by_debug(struct elf_code *elf, uint64_t function, struct function_kind *kind);

/* What the callers of a method tell about its arguments: bit n is set as long as the n-th register for arguments
 * may hold this one. */
struct rust_hints {
    unsigned size, old;
    bool has_caller;
};

/* The hints before any caller is looked at: every register that is possible for a method of this kind. */
struct rust_hints rust_arguments_no_hints(const struct function_kind *kind);

/* Narrows the hints by the code of `caller`, from its entry to its calls of `method`. `caller_kind` says which
 * registers hold the caller's own arguments. */
void rust_arguments_add_hints(struct rust_hints *hints, const struct elf_code *elf,
    const struct elf_function *caller, const struct function_kind *caller_kind, uint64_t method);

/* As rust_arguments_by_debug, but from the hints. False if they leave more than one register for an argument. */
bool rust_arguments_by_hints(const struct rust_hints *hints, struct function_kind *kind);

#endif
