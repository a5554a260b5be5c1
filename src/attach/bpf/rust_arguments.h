/* Where the functions of a Rust allocator find their arguments.
 *
 * Nobody outside of the program calls them, so the compiler arranges them as it likes: an unused `self` is
 * not handed over, and which word of a layout comes first depends on the compiler's version. The debug
 * information says it. Without, it follows from the code of functions whose own arguments are known:
 *
 *     __rust_alloc:  mov %rdi,%rax      size is in rdi, by the rules for __rust_alloc
 *                    mov %rsi,%rdi
 *                    mov %rax,%rsi
 *                    jmp alloc          so alloc finds it in rsi */
#ifndef MALLOSCOPE_ATTACH_BPF_RUST_ARGUMENTS_H
#define MALLOSCOPE_ATTACH_BPF_RUST_ARGUMENTS_H

#include "attach/bpf/allocator_functions.h"
#include "attach/bpf/elf_code.h"

/* Changes the numbers of the arguments in `kind` from those in the source to those of the registers. False if
 * the debug information does not tell them all; then `kind` is as it was. */
bool rust_arguments_by_debug(struct elf_code *elf, uint64_t function, struct function_kind *kind);

/* What the callers of a method tell: bit n of each is set if the n-th register may hold it. */
struct rust_hints {
    unsigned size, old;
    bool has_caller;
};

/* Nothing is known yet. */
struct rust_hints rust_arguments_no_hints(const struct function_kind *kind);

/* Follows the code of `caller`, whose arguments lie as `caller_kind` says, to its calls of `method`. */
void rust_arguments_add_hints(struct rust_hints *hints, const struct elf_code *elf,
    const struct elf_function *caller, const struct function_kind *caller_kind, uint64_t method);

/* As rust_arguments_by_debug. */
bool rust_arguments_by_hints(const struct rust_hints *hints, struct function_kind *kind);

#endif
