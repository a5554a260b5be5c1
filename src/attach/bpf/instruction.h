/* x86-64 instructions, as far as a probe has to know them: how long, where control goes, which registers
 * change, and what a probe on them costs.
 *
 * The kernel puts a breakpoint over the first byte. A few instructions it then emulates; all others it copies
 * elsewhere and executes in single steps, which costs a second trap (25 times as much in a virtual machine).
 */
#ifndef MALLOSCOPE_ATTACH_BPF_INSTRUCTION_H
#define MALLOSCOPE_ATTACH_BPF_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum instruction_kind {
    INSTRUCTION_UNKNOWN, /* not decoded */
    INSTRUCTION_PLAIN,   /* goes on to the next one */
    INSTRUCTION_PUSH,
    INSTRUCTION_NOP,       /* one byte */
    INSTRUCTION_NOP5,      /* 0f 1f 44 00 00, which new kernels replace by a call */
    INSTRUCTION_JUMP,      /* to `target` */
    INSTRUCTION_BRANCH,    /* to `target` or on */
    INSTRUCTION_CALL,      /* of `target` */
    INSTRUCTION_JUMP_SLOT, /* to where the word at address `target` points */
    INSTRUCTION_CALL_SLOT,
    INSTRUCTION_JUMP_ANYWHERE,
    INSTRUCTION_CALL_ANYWHERE,
    INSTRUCTION_RETURN,
    INSTRUCTION_STOP, /* trap: control does not come here, or not back */
};

/* Sets of general registers, by their x86 numbers: bit 0 is rax, bit 4 rsp, bit 7 rdi. */
#define REGISTERS_ALL 0xffffu
#define REGISTER_RSP  4

struct instruction {
    enum instruction_kind kind;
    uint8_t length;
    bool has_prefix;           /* beside a REX that only names a register */
    uint16_t writes;           /* registers that may change; REGISTERS_ALL if that is not known */
    int8_t copy_from, copy_to; /* mov between whole registers, else -1 */
    uint64_t target;
    const char *name; /* "push", "test", … or "" */
};

/* Decodes what lies at `code`, of which `size` bytes can be read, for the address `address`. */
struct instruction instruction_decode(const uint8_t *code, size_t size, uint64_t address);

/* Whether every kernel that can be used emulates it (`has_fast_nops`: or replaces 5-byte nops). */
bool instruction_is_emulated(const struct instruction *instruction, bool has_fast_nops);

#endif
