/* Where in a function the probe goes.
 *
 * Not always at its first byte: what the kernel has to execute in single steps costs a second trap. A few
 * instructions further there is often one that it emulates, and until then nothing has happened:
 *
 *     free:  test %rdi,%rdi   ◄─ single-stepped        malloc:  cmp $0x1000,%rdi
 *            je   …           ◄─ emulated: here                 ja  …             ◄─ here
 *
 * The walk goes straight on from the entry. It follows the arguments when they are copied to other registers,
 * and ends where one is lost, where control leaves, or, if the return is to be caught, where the stack
 * pointer moves. */
#ifndef MALLOSCOPE_ATTACH_BPF_PROBE_POINT_H
#define MALLOSCOPE_ATTACH_BPF_PROBE_POINT_H

#include "attach/bpf/allocator_functions.h"
#include "attach/bpf/elf_code.h"

#include <stdbool.h>
#include <stdint.h>

enum probe_cost {
    COST_REPLACED, /* a 5-byte nop: the kernel puts a call there */
    COST_EMULATED,
    COST_STEPPED,
};

struct probe_point {
    uint64_t address;
    enum probe_cost cost;
    /* The x86 numbers of the registers that hold the arguments there; -1 = there is none. */
    signed char size, factor, old, out;
    uint8_t bytes[8];
    unsigned char length;    /* of the instruction */
    const char *instruction; /* its name, "" if it is not one that is named */
};

/* For a function of this kind at `function->address`. False if its code cannot be read. */
bool probe_point_find(const struct elf_code *elf, const struct elf_function *function,
    const struct function_kind *kind, struct probe_point *ret_point);

#endif
