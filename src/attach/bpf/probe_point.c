#include "attach/bpf/probe_point.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "attach/bpf/argument_places.h"
#include "attach/bpf/control_flow.h"
#include "attach/bpf/instruction.h"

#define INSTRUCTIONS_MAX 16

static void set_point(struct probe_point *point, uint64_t address, const uint8_t *code,
    const struct instruction *instruction, const struct argument_places *places, enum probe_cost cost) {
    *point = (struct probe_point){.address = address, .cost = cost, .instruction = instruction->name};
    point->length = instruction->length;
    memcpy(point->bytes, code,
        instruction->length < sizeof point->bytes ? instruction->length : sizeof point->bytes);
    point->size = argument_places_first(places, ARGUMENT_SIZE);
    point->factor = argument_places_first(places, ARGUMENT_FACTOR);
    point->old = argument_places_first(places, ARGUMENT_OLD);
    point->out = argument_places_first(places, ARGUMENT_OUT);
}

/* Whether the kernel replaces a 5-byte nop by a call: Linux 6.18 and later do. */
static bool has_fast_nops(void) {
    struct utsname name;
    int major = 0, minor = 0;
    if (uname(&name) != 0 || sscanf(name.release, "%d.%d", &major, &minor) != 2) return false;
    return major > 6 || (major == 6 && minor >= 18);
}

bool probe_point_find(const struct elf_code *elf, const struct elf_function *function,
    const struct function_kind *kind, struct probe_point *ret_point) {
    bool catches_return = kind->role == ROLE_ALLOCATE || kind->role == ROLE_RESIZE;
    struct argument_places places = argument_places_at_entry(kind);
    size_t size;
    const uint8_t *code = elf_code_bytes(elf, function->address, &size);
    if (!code) return false;
    struct instruction instruction = instruction_decode(code, size, function->address);
    struct argument_places first = places;
    set_point(ret_point, function->address, code, &instruction, &first, COST_STEPPED);

    uint64_t at = 0;
    for (int i = 0; i < INSTRUCTIONS_MAX; i++) {
        instruction = instruction_decode(code + at, size - at, function->address + at);
        if (instruction_is_emulated(&instruction, has_fast_nops())) {
            if (at > 0 &&
                control_flow_jumps_into(elf, function->address, function->size, function->address + at))
                break;
            set_point(ret_point, function->address + at, code + at, &instruction, &places,
                instruction.kind == INSTRUCTION_NOP5 ? COST_REPLACED : COST_EMULATED);
            return true;
        }
        if (instruction.kind != INSTRUCTION_PLAIN && instruction.kind != INSTRUCTION_NOP5 &&
            instruction.kind != INSTRUCTION_PUSH)
            break;
        if (catches_return && (instruction.writes >> REGISTER_RSP & 1)) break;
        if (!argument_places_step(&places, &instruction)) break;
        at += instruction.length;
        if (at >= size || (function->size && at >= function->size)) break;
    }
    return true;
}
