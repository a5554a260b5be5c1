/* Which registers hold a function's arguments while its code runs, from instruction to instruction. */
#ifndef MALLOSCOPE_ATTACH_BPF_ARGUMENT_PLACES_H
#define MALLOSCOPE_ATTACH_BPF_ARGUMENT_PLACES_H

#include "attach/bpf/allocator_functions.h"
#include "attach/bpf/instruction.h"

#include <stdbool.h>
#include <stdint.h>

enum argument { ARGUMENT_SIZE, ARGUMENT_FACTOR, ARGUMENT_OLD, ARGUMENT_OUT, ARGUMENTS };

struct argument_places {
    uint16_t registers[ARGUMENTS]; /* for each argument the set of the registers that hold it */
    bool is_used[ARGUMENTS];       /* whether the function has this argument at all */
};

/* The registers in which arguments are passed, by their x86 numbers: rdi, rsi, rdx, rcx, r8, r9. */
#define ARGUMENT_REGISTERS 6
extern const signed char argument_registers[ARGUMENT_REGISTERS];

/* The places when a function of this kind is entered. */
struct argument_places argument_places_at_entry(const struct function_kind *kind);

/* Changes the places as the instruction does. False if no register holds one of the arguments any more. */
bool argument_places_step(struct argument_places *places, const struct instruction *instruction);

/* The x86 number of a register that holds the argument, or -1. */
signed char argument_places_first(const struct argument_places *places, enum argument argument);

#endif
