/* The instruction of a function that gets the probe.
 *
 * The first instruction is not always the best one. The kernel emulates some kinds of instructions when a probe
 * on them is hit; any other it executes in a single step, which costs a second trap. A few instructions after the
 * entry there is often one that is emulated, and the instructions before it have not changed anything that
 * matters:
 *
 *     free:  test %rdi,%rdi   ◄─ single-stepped        malloc:  cmp $0x1000,%rdi
 *            je   …           ◄─ emulated: here                 ja  …             ◄─ here
 *
 * The search goes straight on from the entry and follows the arguments when they are copied to other registers.
 * It gives up where no register holds an argument any more, where control may go elsewhere, and, if the return is
 * to be caught, where the stack pointer changes, because the kernel finds the return address at the stack
 * pointer. It also gives up if a jump of the function leads between the entry and the instruction that was found:
 * that instruction would be executed again without a new call. Then the first instruction gets the probe. */
#ifndef MALLOSCOPE_ATTACH_BPF_PROBE_POINT_H
#define MALLOSCOPE_ATTACH_BPF_PROBE_POINT_H

#include "attach/bpf/allocator_functions.h"
#include "attach/bpf/elf_code.h"

#include <stdbool.h>
#include <stdint.h>

enum probe_cost {
    COST_REPLACED, /* a 5-byte nop, which the kernel replaces by a call: no trap */
    COST_EMULATED, /* one trap */
    COST_STEPPED,  /* two traps */
};

struct probe_point {
    uint64_t address;
    enum probe_cost cost;
    /* The x86 numbers of the registers that hold the arguments there; -1: the function has no such argument. */
    signed char size, factor, old, out;
    uint8_t bytes[8];        /* the beginning of the instruction */
    unsigned char length;    /* of the instruction */
    const char *instruction; /* its name, or "" */
};

/* Finds the instruction for a function of this kind. False if the function's code cannot be read. */
bool probe_point_find(const struct elf_code *elf, const struct elf_function *function,
    const struct function_kind *kind, struct probe_point *ret_point);

#endif
