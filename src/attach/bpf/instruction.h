/* A decoder of x86-64 instructions, for what a probe has to know about them: their length, where control goes,
 * which registers change, and what a probe on them costs.
 *
 * A probe is a breakpoint that the kernel writes over the first byte of an instruction. When it is hit, the
 * kernel emulates the instruction if it is of one of a few kinds. Any other instruction it copies elsewhere and
 * executes in a single step, which costs a second trap (25 times as much in a virtual machine). */
#ifndef MALLOSCOPE_ATTACH_BPF_INSTRUCTION_H
#define MALLOSCOPE_ATTACH_BPF_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum instruction_kind {
    INSTRUCTION_UNKNOWN,       /* cannot be decoded */
    INSTRUCTION_PLAIN,         /* control goes on to the next instruction */
    INSTRUCTION_PUSH,          /* of a register */
    INSTRUCTION_NOP,           /* one byte */
    INSTRUCTION_NOP5,          /* 0f 1f 44 00 00, which Linux 6.18 and later replace by a call */
    INSTRUCTION_JUMP,          /* to `target` */
    INSTRUCTION_BRANCH,        /* to `target` or on to the next instruction */
    INSTRUCTION_CALL,          /* of `target` */
    INSTRUCTION_JUMP_SLOT,     /* to the address in the word at `target` */
    INSTRUCTION_CALL_SLOT,     /* of the address in the word at `target` */
    INSTRUCTION_JUMP_ANYWHERE, /* through a register, or through memory that a register points to */
    INSTRUCTION_CALL_ANYWHERE,
    INSTRUCTION_RETURN,
    INSTRUCTION_STOP, /* a trap: control does not go on behind it */
};

/* A set of general registers has one bit for each, by its x86 number: bit 0 is rax, bit 4 rsp, bit 7 rdi. */
#define REGISTERS_ALL 0xffffu
#define REGISTER_RSP  4

struct instruction {
    enum instruction_kind kind;
    uint8_t length;
    bool has_prefix;           /* other than a REX byte that only extends the number of a register */
    uint16_t writes;           /* set of the registers that may change; REGISTERS_ALL if that is not known */
    int8_t copy_from, copy_to; /* numbers of the registers of a 64-bit mov between two; else -1 */
    uint64_t target;           /* of jumps, branches, calls and slots */
    const char *name;          /* "push", "test", …, or "" */
};

/* Decodes the instruction at `code`, which lies at the link-time address `address`. `size` bytes can be read
 * there. */
struct instruction instruction_decode(const uint8_t *code, size_t size, uint64_t address);

/* Whether a probe on the instruction costs one trap or none: all supported kernels emulate it, or, with
 * `has_fast_nops`, the kernel replaces it by a call. */
bool instruction_is_emulated(const struct instruction *instruction, bool has_fast_nops);

#endif
