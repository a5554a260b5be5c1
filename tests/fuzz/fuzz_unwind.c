/* The unwinder: rules from any unwind information, and walks over any stack. The first byte says which.
 *
 *     'r' │ where the code begins, relative to the data (4, signed) │ its size (4) │ 4 places in it (4 each)
 *         │ a loaded segment that begins with .eh_frame_hdr
 *     's' │ what is proven readable (1) │ frames wanted (1) │ registers, words of the stack (8 each)
 *
 * The top byte of a word says what it is: an offset in the stack (1), in this program's code (2), in libc's
 * (3), or a plain number. Code bytes are taken from the data again. */
#include "fuzz.h"

#include "core/recording.h"
#include "unwind/mapping_list.h"
#include "unwind/rule.h"
#include "unwind/unwind.h"

#include <sys/mman.h>

#define STACK_SIZE  (4 * 4096)
#define EVEN_PLACES 16

static struct mapping code[2]; /* this program's and libc's */
static uint64_t stack;        /* with unreadable pages on both sides */

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    bool certain;
    unwind_start(NULL, true);
    REQUIRE(mapping_list_find((uint64_t)&LLVMFuzzerInitialize, &code[0], &certain));
    REQUIRE(mapping_list_find((uint64_t)&getenv, &code[1], &certain));
    char *area = mmap(NULL, STACK_SIZE + 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(area != MAP_FAILED);
    stack = (uint64_t)area + 4096;
    REQUIRE(mprotect((void *)stack, STACK_SIZE, PROT_READ | PROT_WRITE) == 0);
    return 0;
}

/* ---- rules ---- */

static bool read_code(const struct mapping *mapping, void *target, uint64_t address, uint64_t size) {
    uint64_t length = mapping->data_high - mapping->data_low;
    for (uint64_t i = 0; i < size; i++)
        ((uint8_t *)target)[i] = ((const uint8_t *)mapping->data_low)[(address + i) % length];
    return address - mapping->start < mapping->end - mapping->start + 64;
}

static void evaluate(const struct mapping *mapping, uint64_t pc) {
    struct rule rule = {0};
    if (!rule_evaluate(mapping, pc, &rule)) return;
    REQUIRE(rule_kind(rule) <= RULE_EPILOGUE && rule_kind(rule) != RULE_OUTSIDE);
    if (rule_kind(rule) == RULE_CALL || rule_kind(rule) == RULE_REALIGNED)
        REQUIRE(rule_base(rule) < BASE_COUNT);
}

static void rules(struct input input) {
    int32_t begin = (int32_t)input_number(&input, 4);
    uint32_t length = (uint32_t)input_number(&input, 4), place[4];
    input_take(&input, place, sizeof place);
    if (input.size < MAPPING_IDENTITY_SIZE) return;
    char *data = input_text(input.bytes, input.size);
    struct mapping mapping = {.data_low = (uint64_t)data, .data_high = (uint64_t)data + input.size};
    mapping.header = mapping.data_low;
    mapping.header_size = input.size;
    mapping.start = mapping.header + (uint64_t)(int64_t)begin;
    mapping.end = mapping.start + length;
    mapping.base = mapping.start;
    mapping.permanent = 1;
    mapping.reader = read_code;
    uint8_t first[MAPPING_IDENTITY_SIZE];
    REQUIRE(mapping_copy_header(&mapping, first));
    mapping.identity = mapping_identity(first);
    for (unsigned i = 0; i < 4; i++) evaluate(&mapping, mapping.start + place[i] % ((uint64_t)length + 1));
    for (uint64_t i = 0; i < EVEN_PLACES; i++) evaluate(&mapping, mapping.start + length * i / EVEN_PLACES);
    for (unsigned i = 0; i < 4; i++) {
        uint64_t function, size;
        rule_extent(&mapping, mapping.header + place[i] % input.size, &function, &size);
    }
    free(data);
}

/* ---- walks ---- */

static uint64_t input_word(struct input *input) {
    uint64_t word = input_number(input, 8), value = word & FRAME_VALUE_MASK;
    switch (word >> 56) {
    case 1:
        return stack + value % (STACK_SIZE + 512) - 256;
    case 2:
    case 3: {
        const struct mapping *mapping = &code[(word >> 56) - 2];
        return mapping->start + value % (mapping->end - mapping->start);
    }
    default:
        return word;
    }
}

static void walk(struct input input) {
    uint8_t proven = (uint8_t)input_number(&input, 1), max = (uint8_t)input_number(&input, 1);
    struct unwind_registers registers;
    for (unsigned i = 0; i < sizeof registers / 8; i++) ((uint64_t *)&registers)[i] = input_word(&input);
    for (unsigned i = 0; i < STACK_SIZE / 8; i++)
        ((uint64_t *)stack)[i] = input.size ? input_word(&input) : 0;
    struct unwind_bounds bounds = {.low = stack,
        .high = stack + STACK_SIZE + (proven & 1 ? 4096 : 0), /* more than there is */
        .proven = stack + (uint64_t)(proven >> 6) * STACK_SIZE / 3};
    uint64_t frames[256];
    bool complete;
    uint32_t count = unwind_capture(&registers, bounds, frames, max, &complete);
    REQUIRE(count <= max);
    for (uint32_t i = 0; i < count; i++)
        REQUIRE(frames[i] >> 48 == 0 || frames[i] >> FRAME_KIND_SHIFT == FRAME_CUT);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (size == 0) return 0;
    if (bytes[0] == 'r') rules((struct input){bytes + 1, size - 1});
    if (bytes[0] == 's') walk((struct input){bytes + 1, size - 1});
    return 0;
}
