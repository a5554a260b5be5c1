#include "attach/bpf/instruction.h"

#include <string.h>

/* What follows an opcode: bits, which can be combined. */
enum form {
    FORM_NONE = 0,
    FORM_MODRM = 1 << 0,
    FORM_8 = 1 << 1,   /* immediate or displacement of one byte */
    FORM_16 = 1 << 2,  /* two bytes */
    FORM_Z = 1 << 3,   /* four bytes; two with the operand size prefix */
    FORM_32 = 1 << 4,  /* four bytes with any prefix */
    FORM_V = 1 << 5,   /* as FORM_Z, but eight bytes with REX.W */
    FORM_A = 1 << 6,   /* an address of eight bytes; four with the address size prefix */
    FORM_BAD = 1 << 7, /* no instruction of 64-bit mode */
};

static int form_of_one_byte(uint8_t opcode) {
    if (opcode < 0x40) {
        if ((opcode & 7) < 4) return FORM_MODRM;
        if ((opcode & 7) == 4) return FORM_8;
        if ((opcode & 7) == 5) return FORM_Z;
        return FORM_BAD; /* or a prefix, but read_opcode has passed those */
    }
    if (opcode >= 0x50 && opcode <= 0x5f) return FORM_NONE;
    if (opcode >= 0x70 && opcode <= 0x7f) return FORM_8;
    if (opcode >= 0x84 && opcode <= 0x8f) return FORM_MODRM;
    if (opcode >= 0x90 && opcode <= 0x9f) return opcode == 0x9a ? FORM_BAD : FORM_NONE;
    if (opcode >= 0xa0 && opcode <= 0xa3) return FORM_A;
    if (opcode >= 0xa4 && opcode <= 0xaf)
        return opcode == 0xa8 ? FORM_8 : opcode == 0xa9 ? FORM_Z : FORM_NONE;
    if (opcode >= 0xb0 && opcode <= 0xb7) return FORM_8;
    if (opcode >= 0xb8 && opcode <= 0xbf) return FORM_V;
    if (opcode >= 0xd8 && opcode <= 0xdf) return FORM_MODRM;
    if (opcode >= 0xe0 && opcode <= 0xe7) return FORM_8;
    if (opcode >= 0xec) return opcode == 0xf6 || opcode == 0xf7 || opcode >= 0xfe ? FORM_MODRM : FORM_NONE;
    switch (opcode) {
    case 0x63:
        return FORM_MODRM;
    case 0x68:
        return FORM_Z;
    case 0x69:
        return FORM_MODRM | FORM_Z;
    case 0x6a:
        return FORM_8;
    case 0x6b:
        return FORM_MODRM | FORM_8;
    case 0x6c ... 0x6f:
        return FORM_NONE;
    case 0x80:
    case 0x83:
        return FORM_MODRM | FORM_8;
    case 0x81:
        return FORM_MODRM | FORM_Z;
    case 0xc0:
    case 0xc1:
        return FORM_MODRM | FORM_8;
    case 0xc2:
    case 0xca:
        return FORM_16;
    case 0xc3:
    case 0xc9:
    case 0xcb:
    case 0xcc:
    case 0xcf:
        return FORM_NONE;
    case 0xc6:
        return FORM_MODRM | FORM_8;
    case 0xc7:
        return FORM_MODRM | FORM_Z;
    case 0xc8:
        return FORM_16 | FORM_8;
    case 0xcd:
        return FORM_8;
    case 0xd0 ... 0xd3:
        return FORM_MODRM;
    case 0xd7:
        return FORM_NONE;
    case 0xe8:
    case 0xe9:
        return FORM_32;
    case 0xeb:
        return FORM_8;
    }
    return FORM_BAD;
}

/* For opcodes after the byte 0f, and of map 1 of VEX and EVEX. */
static int form_of_two_bytes(uint8_t opcode) {
    switch (opcode) {
    case 0x05 ... 0x09:
    case 0x0b:
    case 0x0e:
    case 0x30 ... 0x37:
    case 0x77:
    case 0xa0 ... 0xa2:
    case 0xa8 ... 0xaa:
    case 0xc8 ... 0xcf:
        return FORM_NONE;
    case 0x04:
    case 0x0a:
    case 0x0c:
        return FORM_BAD;
    case 0x80 ... 0x8f:
        return FORM_32;
    case 0x0f:
    case 0x70 ... 0x73:
    case 0xa4:
    case 0xac:
    case 0xba:
    case 0xc2:
    case 0xc4 ... 0xc6:
        return FORM_MODRM | FORM_8;
    }
    return FORM_MODRM;
}

/* The parts of an instruction, in their order in the code. */
struct parts {
    bool operand_size, address_size, repeat, is_vector;
    uint8_t rex;
    int map; /* of opcodes: 0, 1 (after 0f), 2 (after 0f 38), 3 (after 0f 3a); VEX and EVEX have more */
    uint8_t opcode;
    bool has_modrm;
    uint8_t mod, reg, rm; /* the last two include their bits of the REX byte */
    bool rip_relative;
    int64_t displacement, immediate;
    size_t prefixes, length;
};

struct reader {
    const uint8_t *at, *end;
    bool failed;
};

static uint8_t next_byte(struct reader *reader) {
    if (reader->at >= reader->end) {
        reader->failed = true;
        return 0;
    }
    return *reader->at++;
}

static int64_t next_signed(struct reader *reader, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value |= (uint64_t)next_byte(reader) << (8 * i);
    if (bytes == 0 || bytes == 8) return (int64_t)value;
    uint64_t sign = 1ULL << (8 * bytes - 1);
    return (int64_t)((value ^ sign) - sign);
}

static bool is_prefix(uint8_t byte, struct parts *parts) {
    switch (byte) {
    case 0x66:
        parts->operand_size = true;
        return true;
    case 0x67:
        parts->address_size = true;
        return true;
    case 0xf2:
    case 0xf3:
        parts->repeat = true;
        return true;
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0xf0:
        return true;
    }
    return false;
}

static void read_modrm(struct reader *reader, struct parts *parts) {
    uint8_t modrm = next_byte(reader);
    parts->has_modrm = true;
    parts->mod = modrm >> 6;
    parts->reg = (uint8_t)((modrm >> 3 & 7) | (parts->rex & 4) << 1);
    parts->rm = (uint8_t)((modrm & 7) | (parts->rex & 1) << 3);
    if (parts->mod == 3) return;
    int displacement = parts->mod == 1 ? 1 : parts->mod == 2 ? 4 : 0;
    if ((modrm & 7) == 4) {
        uint8_t sib = next_byte(reader);
        if ((sib & 7) == 5 && parts->mod == 0) displacement = 4;
    } else if ((modrm & 7) == 5 && parts->mod == 0) {
        displacement = 4;
        parts->rip_relative = true;
    }
    parts->displacement = next_signed(reader, displacement);
}

static void read_immediate(struct reader *reader, struct parts *parts, int form) {
    /* f6 and f7 are the only opcodes whose immediate depends on the modrm byte: `test` has one, `not`, `neg` and
     * `mul` have none. */
    if (parts->map == 0 && (parts->opcode == 0xf6 || parts->opcode == 0xf7) && (parts->reg & 7) < 2)
        form |= parts->opcode == 0xf6 ? FORM_8 : FORM_Z;
    if (form & FORM_16) parts->immediate = next_signed(reader, 2);
    if (form & FORM_8) parts->immediate = next_signed(reader, 1);
    if (form & FORM_32) parts->immediate = next_signed(reader, 4);
    if (form & FORM_Z) parts->immediate = next_signed(reader, parts->operand_size ? 2 : 4);
    if (form & FORM_V)
        parts->immediate = next_signed(reader, parts->rex & 8 ? 8 : parts->operand_size ? 2 : 4);
    if (form & FORM_A) parts->immediate = next_signed(reader, parts->address_size ? 4 : 8);
}

/* The rest of a VEX or EVEX prefix, which contains the number of the opcode map, and the opcode. */
static int read_vector_prefix(struct reader *reader, struct parts *parts, uint8_t first) {
    parts->is_vector = true;
    uint8_t second = next_byte(reader);
    parts->map = first == 0xc5 ? 1 : second & (first == 0x62 ? 7 : 31);
    if (first != 0xc5) next_byte(reader);
    if (first == 0x62) next_byte(reader);
    parts->opcode = next_byte(reader);
    if (parts->map == 1 && parts->opcode == 0x77) return FORM_NONE;
    if (parts->map == 1) return form_of_two_bytes(parts->opcode) | FORM_MODRM;
    if (parts->map == 3) return FORM_MODRM | FORM_8;
    return parts->map == 2 || parts->map == 5 || parts->map == 6 ? FORM_MODRM : FORM_BAD;
}

static int read_opcode(struct reader *reader, struct parts *parts) {
    uint8_t byte = next_byte(reader);
    while (is_prefix(byte, parts) && !reader->failed) byte = next_byte(reader);
    if ((byte & 0xf0) == 0x40) {
        parts->rex = byte;
        byte = next_byte(reader);
    }
    if (byte == 0xc4 || byte == 0xc5 || byte == 0x62) return read_vector_prefix(reader, parts, byte);
    parts->opcode = byte;
    if (byte != 0x0f) return form_of_one_byte(byte);
    parts->opcode = byte = next_byte(reader);
    parts->map = 1;
    if (byte != 0x38 && byte != 0x3a) return form_of_two_bytes(byte);
    parts->map = byte == 0x38 ? 2 : 3;
    parts->opcode = next_byte(reader);
    return parts->map == 2 ? FORM_MODRM : FORM_MODRM | FORM_8;
}

static bool read_parts(const uint8_t *code, size_t size, struct parts *parts) {
    struct reader reader = {.at = code, .end = code + (size < 15 ? size : 15)};
    memset(parts, 0, sizeof *parts);
    int form = read_opcode(&reader, parts);
    if (form & FORM_BAD) return false;
    if (form & FORM_MODRM) read_modrm(&reader, parts);
    read_immediate(&reader, parts, form);
    parts->length = (size_t)(reader.at - code);
    return !reader.failed;
}

/* ---- what the instruction does ---- */

static uint16_t one(uint8_t number) {
    return (uint16_t)(1u << number);
}

/* The set with the register that the modrm byte names; empty if it names memory. */
static uint16_t rm_of(const struct parts *parts) {
    return parts->mod == 3 ? one(parts->rm) : 0;
}

static void describe_arithmetic(const struct parts *parts, struct instruction *instruction) {
    static const char *const names[] = {"add", "or", "adc", "sbb", "and", "sub", "xor", "cmp"};
    int operation = parts->opcode < 0x40 ? parts->opcode >> 3 : parts->reg & 7;
    instruction->name = names[operation];
    if (operation == 7)
        instruction->writes = 0;
    else if (parts->opcode >= 0x40 || (parts->opcode & 7) < 2)
        instruction->writes = rm_of(parts);
    else
        instruction->writes = (parts->opcode & 7) < 4 ? one(parts->reg) : one(0);
}

static void describe_move(const struct parts *parts, struct instruction *instruction) {
    bool to_memory_side = parts->opcode == 0x88 || parts->opcode == 0x89;
    instruction->name = "mov";
    instruction->writes = to_memory_side ? rm_of(parts) : one(parts->reg);
    if (parts->mod != 3 || !(parts->rex & 8) || !(parts->opcode & 1)) return;
    instruction->copy_from = (int8_t)(to_memory_side ? parts->reg : parts->rm);
    instruction->copy_to = (int8_t)(to_memory_side ? parts->rm : parts->reg);
}

static void describe_group_5(const struct parts *parts, struct instruction *instruction) {
    bool is_slot = parts->mod != 3 && parts->rip_relative;
    switch (parts->reg & 7) {
    case 0:
    case 1:
        instruction->name = (parts->reg & 7) == 0 ? "inc" : "dec";
        instruction->writes = rm_of(parts);
        break;
    case 2:
        instruction->name = "call";
        instruction->kind = is_slot ? INSTRUCTION_CALL_SLOT : INSTRUCTION_CALL_ANYWHERE;
        break;
    case 4:
        instruction->name = "jmp";
        instruction->kind = is_slot ? INSTRUCTION_JUMP_SLOT : INSTRUCTION_JUMP_ANYWHERE;
        break;
    case 6:
        instruction->name = "push";
        instruction->writes = one(REGISTER_RSP);
        break;
    }
}

static void describe_one_byte(const struct parts *parts, struct instruction *instruction) {
    uint8_t opcode = parts->opcode;
    if (opcode < 0x40 || opcode == 0x80 || opcode == 0x81 || opcode == 0x83) {
        describe_arithmetic(parts, instruction);
        return;
    }
    switch (opcode) {
    case 0x50 ... 0x57:
        instruction->kind = INSTRUCTION_PUSH;
        instruction->name = "push";
        instruction->writes = one(REGISTER_RSP);
        break;
    case 0x58 ... 0x5f:
        instruction->name = "pop";
        instruction->writes = one(REGISTER_RSP) | one((uint8_t)((opcode & 7) | (parts->rex & 1) << 3));
        break;
    case 0x63:
        instruction->name = "movslq";
        instruction->writes = one(parts->reg);
        break;
    case 0x69:
    case 0x6b:
        instruction->name = "imul";
        instruction->writes = one(parts->reg);
        break;
    case 0x70 ... 0x7f:
        instruction->kind = INSTRUCTION_BRANCH;
        instruction->name = opcode == 0x74 ? "je" : opcode == 0x75 ? "jne" : "jcc";
        break;
    case 0x84:
    case 0x85:
    case 0xa8:
    case 0xa9:
        instruction->name = "test";
        instruction->writes = 0;
        break;
    case 0x88 ... 0x8b:
        describe_move(parts, instruction);
        break;
    case 0x8d:
        instruction->name = "lea";
        instruction->writes = one(parts->reg);
        break;
    case 0x90:
        instruction->kind = parts->prefixes == 0 && !parts->rex ? INSTRUCTION_NOP : INSTRUCTION_PLAIN;
        instruction->name = "nop";
        instruction->writes = parts->rex ? REGISTERS_ALL : 0;
        break;
    case 0xb0 ... 0xbf:
        instruction->name = "mov";
        instruction->writes = one((uint8_t)((opcode & 7) | (parts->rex & 1) << 3));
        break;
    case 0xc0:
    case 0xc1:
    case 0xd0 ... 0xd3:
        instruction->name = "shift";
        instruction->writes = rm_of(parts);
        break;
    case 0xc2:
    case 0xc3:
        instruction->kind = INSTRUCTION_RETURN;
        instruction->name = "ret";
        break;
    case 0xc6:
    case 0xc7:
        instruction->name = "mov";
        instruction->writes = rm_of(parts);
        break;
    case 0xcc:
    case 0xf4:
        instruction->kind = INSTRUCTION_STOP;
        instruction->name = opcode == 0xcc ? "int3" : "hlt";
        break;
    case 0xe0 ... 0xe3:
        instruction->kind = INSTRUCTION_BRANCH;
        break;
    case 0xe8:
        instruction->kind = INSTRUCTION_CALL;
        instruction->name = "call";
        break;
    case 0xe9:
    case 0xeb:
        instruction->kind = INSTRUCTION_JUMP;
        instruction->name = "jmp";
        break;
    case 0xf6:
    case 0xf7:
        if ((parts->reg & 7) < 2) instruction->name = "test";
        instruction->writes = (parts->reg & 7) < 2   ? 0
                              : (parts->reg & 7) < 4 ? rm_of(parts)
                                                     : one(0) | one(2);
        break;
    case 0xfe:
    case 0xff:
        describe_group_5(parts, instruction);
        break;
    }
}

static void describe_two_bytes(
    const uint8_t *code, const struct parts *parts, struct instruction *instruction) {
    static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
    switch (parts->opcode) {
    case 0x0b:
        instruction->kind = INSTRUCTION_STOP;
        instruction->name = "ud2";
        break;
    case 0x1e:
    case 0x1f:
        if (parts->length == 5 && memcmp(code, nop5, 5) == 0) instruction->kind = INSTRUCTION_NOP5;
        instruction->name = parts->opcode == 0x1e && parts->repeat && parts->mod == 3 ? "endbr64" : "nop";
        instruction->writes =
            instruction->name[0] == 'e' && code[parts->length - 1] != 0xfa ? REGISTERS_ALL : 0;
        break;
    case 0x40 ... 0x4f:
        instruction->name = "cmov";
        instruction->writes = one(parts->reg);
        break;
    case 0x80 ... 0x8f:
        instruction->kind = INSTRUCTION_BRANCH;
        instruction->name = parts->opcode == 0x84 ? "je" : parts->opcode == 0x85 ? "jne" : "jcc";
        break;
    case 0x90 ... 0x9f:
        instruction->name = "set";
        instruction->writes = rm_of(parts);
        break;
    case 0xaf:
        instruction->name = "imul";
        instruction->writes = one(parts->reg);
        break;
    case 0xb6:
    case 0xb7:
    case 0xbe:
    case 0xbf:
        instruction->name = "movx";
        instruction->writes = one(parts->reg);
        break;
    }
}

/* Whether the instruction works on bytes. Without a REX byte, the numbers 4 to 7 then mean the second byte of the
 * registers 0 to 3 (ah, ch, dh, bh). */
static bool works_on_bytes(const struct parts *parts) {
    if (parts->map == 1) return parts->opcode >= 0x90 && parts->opcode <= 0x9f;
    if (parts->opcode >= 0xb0 && parts->opcode <= 0xbf) return parts->opcode < 0xb8;
    return parts->map == 0 && !(parts->opcode & 1) && (parts->opcode < 0x50 || parts->opcode > 0x7f);
}

struct instruction instruction_decode(const uint8_t *code, size_t size, uint64_t address) {
    struct instruction instruction = {.copy_from = -1, .copy_to = -1, .writes = REGISTERS_ALL, .name = ""};
    struct parts parts;
    if (!read_parts(code, size, &parts)) return instruction;
    struct parts ignored;
    while (is_prefix(code[parts.prefixes], &ignored)) parts.prefixes++;
    instruction.kind = INSTRUCTION_PLAIN;
    instruction.length = (uint8_t)parts.length;
    instruction.has_prefix = parts.prefixes > 0 || (parts.rex && parts.rex != 0x41);
    if (parts.map == 0 && !parts.is_vector) describe_one_byte(&parts, &instruction);
    if (parts.map == 1 && !parts.is_vector) describe_two_bytes(code, &parts, &instruction);
    if (!parts.rex && works_on_bytes(&parts) && instruction.writes != REGISTERS_ALL)
        instruction.writes |= instruction.writes >> 4 & 0xf;
    uint64_t next = address + parts.length;
    if (instruction.kind == INSTRUCTION_JUMP || instruction.kind == INSTRUCTION_CALL ||
        instruction.kind == INSTRUCTION_BRANCH)
        instruction.target = next + (uint64_t)parts.immediate;
    if (instruction.kind == INSTRUCTION_JUMP_SLOT || instruction.kind == INSTRUCTION_CALL_SLOT)
        instruction.target = next + (uint64_t)parts.displacement;
    return instruction;
}

/* All supported kernels emulate the push of a register, the one-byte nop, and relative jumps, branches and calls,
 * but not the loop instructions (e0–e3), which are branches without a name here. */
bool instruction_is_emulated(const struct instruction *instruction, bool has_fast_nops) {
    if (instruction->has_prefix) return false;
    switch (instruction->kind) {
    case INSTRUCTION_PUSH:
    case INSTRUCTION_NOP:
    case INSTRUCTION_JUMP:
    case INSTRUCTION_CALL:
        return true;
    case INSTRUCTION_BRANCH:
        return instruction->name[0] != '\0';
    case INSTRUCTION_NOP5:
        return has_fast_nops;
    default:
        return false;
    }
}
