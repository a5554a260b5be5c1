/* Where a function's arguments are while its code runs: in which registers, followed from copy to copy. */
#ifndef MALLOSCOPE_ATTACH_BPF_ARGUMENT_PLACES_H
#define MALLOSCOPE_ATTACH_BPF_ARGUMENT_PLACES_H

#include "attach/bpf/allocator_functions.h"
#include "attach/bpf/instruction.h"

#include <stdbool.h>
#include <stdint.h>

enum argument { ARGUMENT_SIZE, ARGUMENT_FACTOR, ARGUMENT_OLD, ARGUMENT_OUT, ARGUMENTS };

/* Which registers hold each argument; an unused one is held by none and not missed. */
struct argument_places {
    uint16_t registers[ARGUMENTS];
    bool is_used[ARGUMENTS];
};

/* The registers that hand arguments over, by their x86 numbers: rdi, rsi, rdx, rcx, r8, r9. */
#define ARGUMENT_REGISTERS 6
extern const signed char argument_registers[ARGUMENT_REGISTERS];

/* As they are when a function of this kind is called. */
struct argument_places argument_places_at_entry(const struct function_kind *kind);

/* Carries the places over an instruction. False if an argument is lost. */
bool argument_places_step(struct argument_places *places, const struct instruction *instruction);

/* The x86 number of a register that holds the argument, or -1. */
signed char argument_places_first(const struct argument_places *places, enum argument argument);

#endif
