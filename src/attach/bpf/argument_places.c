#include "attach/bpf/argument_places.h"

const signed char argument_registers[ARGUMENT_REGISTERS] = {7, 6, 2, 1, 8, 9};

struct argument_places argument_places_at_entry(const struct function_kind *kind) {
    const signed char arguments[ARGUMENTS] = {kind->size, kind->factor, kind->old, kind->out};
    struct argument_places places = {0};
    for (int i = 0; i < ARGUMENTS; i++) {
        if (arguments[i] < 0) continue;
        places.is_used[i] = true;
        places.registers[i] = (uint16_t)(1u << argument_registers[arguments[i]]);
    }
    return places;
}

bool argument_places_step(struct argument_places *places, const struct instruction *instruction) {
    bool all_are_held = true;
    for (int i = 0; i < ARGUMENTS; i++) {
        if (!places->is_used[i]) continue;
        bool is_copied = instruction->copy_from >= 0 && (places->registers[i] >> instruction->copy_from & 1);
        places->registers[i] &= (uint16_t)~instruction->writes;
        if (is_copied) places->registers[i] |= (uint16_t)(1u << instruction->copy_to);
        if (!places->registers[i]) all_are_held = false;
    }
    return all_are_held;
}

signed char argument_places_first(const struct argument_places *places, enum argument argument) {
    for (signed char number = 0; number < 16; number++)
        if (places->registers[argument] >> number & 1) return number;
    return -1;
}
