#include "bpf/probe_point.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "bpf/code_walk.h"
#include "bpf/instruction.h"

#define INSTRUCTIONS_MAX 16

/* rdi, rsi, rdx, rcx, r8, r9 */
static const signed char argument_registers[] = {7, 6, 2, 1, 8, 9};

enum { SIZE, FACTOR, OLD, OUT, ARGUMENTS };

/* Which registers hold each argument; an unused one is held by none and not missed. */
struct places {
    uint16_t registers[ARGUMENTS];
    bool is_used[ARGUMENTS];
};

static void start_places(const struct function_kind *kind, struct places *places) {
    const signed char arguments[ARGUMENTS] = {kind->size, kind->factor, kind->old, kind->out};
    memset(places, 0, sizeof *places);
    for (int i = 0; i < ARGUMENTS; i++) {
        if (arguments[i] < 0) continue;
        places->is_used[i] = true;
        places->registers[i] = (uint16_t)(1u << argument_registers[arguments[i]]);
    }
}

/* Carries the places over an instruction. False if an argument is lost. */
static bool step_places(struct places *places, const struct instruction *instruction) {
    for (int i = 0; i < ARGUMENTS; i++) {
        if (!places->is_used[i]) continue;
        bool is_copied = instruction->copy_from >= 0 && (places->registers[i] >> instruction->copy_from & 1);
        places->registers[i] &= (uint16_t)~instruction->writes;
        if (is_copied) places->registers[i] |= (uint16_t)(1u << instruction->copy_to);
        if (!places->registers[i]) return false;
    }
    return true;
}

static signed char first_register(const struct places *places, int argument) {
    for (signed char number = 0; number < 16; number++)
        if (places->registers[argument] >> number & 1) return number;
    return -1;
}

static void set_point(struct probe_point *point, uint64_t address, const uint8_t *code,
    const struct instruction *instruction, const struct places *places, enum probe_cost cost) {
    *point = (struct probe_point){.address = address, .cost = cost, .instruction = instruction->name};
    point->length = instruction->length;
    memcpy(point->bytes, code,
        instruction->length < sizeof point->bytes ? instruction->length : sizeof point->bytes);
    point->size = first_register(places, SIZE);
    point->factor = first_register(places, FACTOR);
    point->old = first_register(places, OLD);
    point->out = first_register(places, OUT);
}

/* Since 6.18 the kernel replaces 5-byte nops by a call. */
static bool has_fast_nops(void) {
    struct utsname name;
    int major = 0, minor = 0;
    if (uname(&name) != 0 || sscanf(name.release, "%d.%d", &major, &minor) != 2) return false;
    return major > 6 || (major == 6 && minor >= 18);
}

bool probe_point_find(const struct image *image, const struct image_function *function,
    const struct function_kind *kind, struct probe_point *ret_point) {
    bool catches_return = kind->role == ROLE_ALLOCATE || kind->role == ROLE_RESIZE;
    struct places places;
    start_places(kind, &places);
    size_t size;
    const uint8_t *code = image_code(image, function->address, &size);
    if (!code) return false;
    struct instruction instruction = instruction_decode(code, size, function->address);
    struct places first = places;
    set_point(ret_point, function->address, code, &instruction, &first, COST_STEPPED);

    uint64_t at = 0;
    for (int i = 0; i < INSTRUCTIONS_MAX; i++) {
        instruction = instruction_decode(code + at, size - at, function->address + at);
        if (instruction_is_emulated(&instruction, has_fast_nops())) {
            if (at > 0 && code_jumps_into(image, function->address, function->size, function->address + at))
                break;
            set_point(ret_point, function->address + at, code + at, &instruction, &places,
                instruction.kind == INSTRUCTION_NOP5 ? COST_REPLACED : COST_EMULATED);
            return true;
        }
        if (instruction.kind != INSTRUCTION_PLAIN && instruction.kind != INSTRUCTION_NOP5 &&
            instruction.kind != INSTRUCTION_PUSH)
            break;
        if (catches_return && (instruction.writes >> REGISTER_RSP & 1)) break;
        if (!step_places(&places, &instruction)) break;
        at += instruction.length;
        if (at >= size || (function->size && at >= function->size)) break;
    }
    return true;
}
