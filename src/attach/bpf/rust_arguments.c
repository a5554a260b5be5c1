#include "attach/bpf/rust_arguments.h"

#include <dwarf.h>
#include <string.h>

#include "attach/bpf/argument_places.h"
#include "attach/bpf/instruction.h"

/* ---- by debug information ---- */

static bool find_parameter(Dwarf_Die *function, int number, Dwarf_Die *ret_parameter) {
    Dwarf_Die child;
    int r = dwarf_child(function, &child);
    for (; r == 0; r = dwarf_siblingof(&child, &child)) {
        if (dwarf_tag(&child) != DW_TAG_formal_parameter || number-- > 0) continue;
        *ret_parameter = child;
        return true;
    }
    return false;
}

/* The offset of the size in a parameter that is a layout; 0 in any other parameter. */
static Dwarf_Word offset_of_size(Dwarf_Die *parameter) {
    Dwarf_Attribute memory;
    Dwarf_Die type, member;
    if (!dwarf_formref_die(dwarf_attr_integrate(parameter, DW_AT_type, &memory), &type)) return 0;
    int r = dwarf_tag(&type) == DW_TAG_structure_type ? dwarf_child(&type, &member) : 1;
    for (; r == 0; r = dwarf_siblingof(&member, &member)) {
        const char *name = dwarf_diename(&member);
        Dwarf_Word offset;
        if (name && (strcmp(name, "size") == 0 || strcmp(name, "size_") == 0) &&
            dwarf_formudata(dwarf_attr(&member, DW_AT_data_member_location, &memory), &offset) == 0)
            return offset;
    }
    return 0;
}

/* The position in the list of registers for arguments of the register with this DWARF number; -1 if it is not
 * one. */
static signed char position_of(Dwarf_Word number) {
    static const Dwarf_Word registers[ARGUMENT_REGISTERS] = {5, 4, 1, 2, 8, 9};
    for (signed char i = 0; i < ARGUMENT_REGISTERS; i++)
        if (registers[i] == number) return i;
    return -1;
}

/* The position of the register that holds the byte at offset `wanted` of a value, or -1. The whole value is in one
 * register, or pieces of it are in several. */
static signed char register_in(const Dwarf_Op *operations, size_t count, Dwarf_Word wanted) {
    Dwarf_Word offset = 0;
    signed char position = -1;
    for (size_t i = 0; i < count; i++) {
        const Dwarf_Op *operation = &operations[i];
        if (operation->atom >= DW_OP_reg0 && operation->atom <= DW_OP_reg31) {
            position = position_of(operation->atom - DW_OP_reg0);
        } else if (operation->atom == DW_OP_piece) {
            if (wanted >= offset && wanted < offset + operation->number) return position;
            offset += operation->number;
            position = -1;
        } else {
            position = -1;
        }
    }
    return offset == 0 ? position : -1;
}

static signed char find_register(Dwarf_Die *function, Dwarf_Addr entry, int parameter_number) {
    Dwarf_Die parameter;
    Dwarf_Attribute memory;
    Dwarf_Op *operations;
    size_t count;
    if (!find_parameter(function, parameter_number, &parameter) ||
        dwarf_getlocation_addr(
            dwarf_attr(&parameter, DW_AT_location, &memory), entry, &operations, &count, 1) != 1)
        return -1;
    return register_in(operations, count, offset_of_size(&parameter));
}

bool rust_arguments_by_debug(struct elf_code *elf, uint64_t function, struct function_kind *kind) {
    Dwarf_Die die;
    if (!elf_code_describe(elf, function, &die)) return false;
    signed char size = kind->size < 0 ? -1 : find_register(&die, function, kind->size);
    signed char old = kind->old < 0 ? -1 : find_register(&die, function, kind->old);
    if ((kind->size >= 0 && size < 0) || (kind->old >= 0 && old < 0)) return false;
    kind->size = size;
    kind->old = old;
    return true;
}

/* ---- by callers ---- */

/* The set of registers that a called function may change: rax, rcx, rdx, rsi, rdi, r8 to r11. */
#define REGISTERS_OF_CALLEES 0x0fc7u
#define INSTRUCTIONS_MAX     200

struct rust_hints rust_arguments_no_hints(const struct function_kind *kind) {
    /* A layout takes two registers, so the size, which is in the layout or comes after it, may be one register
     * later. */
    return (struct rust_hints){
        .size = kind->size < 0 ? 0 : (1u << (kind->size + 2)) - 1,
        .old = kind->old < 0 ? 0 : (1u << (kind->old + 1)) - 1,
    };
}

/* Keeps those of `positions` whose registers hold the caller's argument at the call. If no register holds it any
 * more, the call tells nothing. */
static void narrow(unsigned *positions, const struct argument_places *places, enum argument argument) {
    unsigned holding = 0;
    for (int i = 0; i < ARGUMENT_REGISTERS; i++)
        if (places->registers[argument] >> argument_registers[i] & 1) holding |= 1u << i;
    if (places->registers[argument]) *positions &= holding;
}

void rust_arguments_add_hints(struct rust_hints *hints, const struct elf_code *elf,
    const struct elf_function *caller, const struct function_kind *caller_kind, uint64_t method) {
    struct argument_places places = argument_places_at_entry(caller_kind);
    uint64_t address = caller->address;
    for (int i = 0; i < INSTRUCTIONS_MAX && address < caller->address + caller->size; i++) {
        size_t size;
        const uint8_t *code = elf_code_bytes(elf, address, &size);
        if (!code) return;
        struct instruction instruction = instruction_decode(code, size, address);
        bool is_call = instruction.kind == INSTRUCTION_CALL, is_jump = instruction.kind == INSTRUCTION_JUMP;
        if ((is_call || is_jump) && instruction.target == method) {
            narrow(&hints->size, &places, ARGUMENT_SIZE);
            narrow(&hints->old, &places, ARGUMENT_OLD);
            hints->has_caller = true;
        }
        /* The code after a branch runs when the branch is not taken: the registers are as before it. */
        if (is_call || instruction.kind == INSTRUCTION_CALL_SLOT ||
            instruction.kind == INSTRUCTION_CALL_ANYWHERE)
            instruction.writes = REGISTERS_OF_CALLEES;
        else if (instruction.kind == INSTRUCTION_BRANCH)
            instruction.writes = 0;
        else if (instruction.kind != INSTRUCTION_PLAIN && instruction.kind != INSTRUCTION_PUSH &&
                 instruction.kind != INSTRUCTION_NOP && instruction.kind != INSTRUCTION_NOP5)
            return;
        argument_places_step(&places, &instruction);
        address += instruction.length;
    }
}

/* The number of the only bit that is set; -1 if none or several are. */
static signed char only_position(unsigned positions) {
    return positions && !(positions & (positions - 1)) ? (signed char)__builtin_ctz(positions) : -1;
}

bool rust_arguments_by_hints(const struct rust_hints *hints, struct function_kind *kind) {
    signed char size = only_position(hints->size), old = only_position(hints->old);
    if (!hints->has_caller || (kind->size >= 0 && size < 0) || (kind->old >= 0 && old < 0)) return false;
    kind->size = kind->size < 0 ? -1 : size;
    kind->old = kind->old < 0 ? -1 : old;
    return true;
}
