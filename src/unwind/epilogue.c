#include "unwind/epilogue.h"

#include <string.h>

#if defined(__x86_64__)

#define WINDOW    64
#define FRAME_MAX (1u << 20)

/* Copies the code at `pc`: WINDOW bytes, or up to the end of the page if the next one cannot be read. Returns how
 * many. */
static uint64_t read_code(const struct mapping *mapping, uint64_t pc, uint8_t code[WINDOW]) {
    uint64_t in_page = PAGE_SIZE_MIN - pc % PAGE_SIZE_MIN;
    if (mapping_copy_code(mapping, code, pc, WINDOW)) return WINDOW;
    return in_page < WINDOW && mapping_copy_code(mapping, code, pc, in_page) ? in_page : 0;
}

/* "add $n,%rsp" or "lea n(%rsp),%rsp": the length of the instruction, 0 if it is a different one. */
static unsigned take_raise(const uint8_t *code, int32_t *ret_bytes) {
    static const struct {
        uint8_t length, size, bytes[4];
    } forms[] = {{3, 1, {0x48, 0x83, 0xc4}}, {3, 4, {0x48, 0x81, 0xc4}}, {4, 1, {0x48, 0x8d, 0x64, 0x24}},
        {4, 4, {0x48, 0x8d, 0xa4, 0x24}}};
    for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (memcmp(code, forms[i].bytes, forms[i].length) != 0) continue;
        /* NOLINTNEXTLINE(bugprone-signed-char-misuse): the processor extends its sign. */
        *ret_bytes = (int8_t)code[forms[i].length];
        if (forms[i].size == 4) memcpy(ret_bytes, code + forms[i].length, 4);
        return forms[i].length + forms[i].size;
    }
    return 0;
}

/* "pop %register": the length of the instruction, 0 if it is a different one. */
static unsigned take_pop(const uint8_t *code, unsigned *ret_register) {
    bool extended = code[0] == 0x41;
    if ((code[extended] & 0xf8) != 0x58) return 0;
    *ret_register = (code[extended] & 7) + (extended ? 8 : 0);
    return 1 + extended;
}

static const uint8_t base_of_popped_register[16] = {
    [3] = BASE_RBX, [5] = BASE_FP, [12] = BASE_R12, [13] = BASE_R13, [14] = BASE_R14, [15] = BASE_R15};

bool epilogue_read(const struct mapping *mapping, uint64_t pc, struct epilogue *ret_epilogue) {
    enum { LONGEST = 8 };
    uint8_t code[WINDOW + LONGEST] = {
        0}; /* zeros behind the code match none of the instructions looked for */
    uint64_t size = read_code(mapping, pc, code);
    struct epilogue epilogue = {0};
    for (uint64_t at = 0; at < size;) {
        const uint8_t *next = code + at;
        int32_t bytes;
        unsigned length, number;
        if (next[0] == 0xc3 || next[0] == 0xc2 || (next[0] == 0xf3 && next[1] == 0xc3)) { /* ret, rep ret */
            *ret_epilogue = epilogue;
            return true;
        }
        if ((length = take_raise(next, &bytes))) {
            if (bytes < 0 || bytes % 8 != 0 || epilogue.return_place + (uint32_t)bytes > FRAME_MAX)
                return false;
            epilogue.return_place += (uint32_t)bytes;
        } else if ((length = take_pop(next, &number))) {
            if (number == 4) return false; /* the stack pointer itself */
            if (base_of_popped_register[number])
                epilogue.place[base_of_popped_register[number]] = epilogue.return_place + 1;
            epilogue.return_place += 8;
        } else {
            return false;
        }
        at += length;
    }
    return false;
}

#else

bool epilogue_read(const struct mapping *mapping, uint64_t pc, struct epilogue *ret_epilogue) {
    (void)mapping, (void)pc, (void)ret_epilogue;
    return false;
}

#endif
