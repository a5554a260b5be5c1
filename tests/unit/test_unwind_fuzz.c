/* Nothing makes the capture crash or hang: garbage registers, garbage stacks, damaged unwind information.
 * Built with the address and undefined behaviour sanitizers. */
#include "check.h"
#include "test_unwind.h"

#include <string.h>
#include <sys/mman.h>

#include "core/recording.h"
#include "unwind/mapping_list.h"
#include "unwind/rule.h"

static uint64_t random_state = 1;

static uint64_t random_word(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * UINT64_C(0x2545f4914f6cdd1d);
}

static uint64_t random_below(uint64_t limit) {
    return random_word() % limit;
}

static struct mapping code[2]; /* this program's and libc's */

#define STACK_SIZE  (16 * 4096)
#define READS_STACK __attribute__((no_sanitize("address"), noinline))

/* What lies on a stack: mostly what looks right. */
static uint64_t plausible_word(uint64_t stack) {
    const struct mapping *module = &code[random_below(2)];
    switch (random_below(8)) {
    case 0:
        return random_word();
    case 1:
        return random_below(4096);
    case 2:
        return (uint64_t)-random_below(4096);
    case 3:
    case 4:
        return stack + random_below(STACK_SIZE / 8 + 100) * 8 - 400;
    case 5:
        return stack + random_below(STACK_SIZE);
    default:
        return module->start + random_below(module->end - module->start);
    }
}

static uint64_t moved(uint64_t word, uint64_t from, uint64_t size, uint64_t to) {
    return word - from < size ? word - from + to : word;
}

/* A copy of the stack we are on, with its pointers moved, and some words changed. */
static READS_STACK void damaged_stack(uint64_t stack, struct unwind_registers *registers) {
    registers_take(registers);
    uint64_t from = registers->sp, size = test_high - from < STACK_SIZE ? test_high - from : STACK_SIZE;
    for (uint64_t i = 0; i < size / 8; i++)
        ((uint64_t *)stack)[i] = moved(((const uint64_t *)from)[i], from, size, stack);
    uint64_t *word = (uint64_t *)registers;
    for (unsigned i = 0; i < sizeof *registers / 8; i++) word[i] = moved(word[i], from, size, stack);
    for (uint64_t changes = random_below(8); changes > 0; changes--)
        ((uint64_t *)stack)[random_below(random_below(2) ? size / 8 : 64)] = plausible_word(stack);
}

static __attribute__((noinline)) void garbage_stacks(int rounds) {
    /* Unreadable memory on both sides, and in the middle of every other stack. */
    char *area = mmap(NULL, STACK_SIZE + 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    uint64_t stack = (uint64_t)area + 4096, deepest = 0, starts = 0;
    for (int round = 0; round < rounds; round++) {
        bool hole = round & 1;
        bool copied = random_below(4) == 0;
        if (round % 64 < 2 || copied) mprotect((void *)stack, STACK_SIZE, PROT_READ | PROT_WRITE);
        if (round % 64 < 2) {
            for (int i = 0; i < STACK_SIZE / 8; i++) ((uint64_t *)stack)[i] = plausible_word(stack);
        }
        struct unwind_registers registers;
        uint64_t *word = (uint64_t *)&registers, frames[64];
        for (unsigned i = 0; i < sizeof registers / 8; i++) word[i] = plausible_word(stack);
        if (random_below(4)) registers.sp = stack + random_below(STACK_SIZE / 8) * 8;
        if (random_below(4)) registers.fp = registers.sp + random_below(64) * 8;
        if (copied) damaged_stack(stack, &registers);
        struct unwind_bounds bounds = {
            .low = stack, .high = stack + STACK_SIZE, .proven = stack + STACK_SIZE};
        if (hole) bounds.proven = random_below(2) ? stack + STACK_SIZE / 2 : 0;
        if (random_below(16) == 0) {
            uint64_t low = 0, high = 0;
            bounds = unwind_stack_bounds(registers.sp, &low, &high);
        }
        if (hole && random_below(16) == 0)
            bounds = (struct unwind_bounds){plausible_word(stack), plausible_word(stack), 0};
        bool complete;
        uint32_t max = (uint32_t)random_below(65),
                 count = unwind_capture(&registers, bounds, frames, max, &complete);
        CHECK(count <= max);
        for (uint32_t i = 0; i < count; i++)
            CHECK(frames[i] >> 48 == 0 || frames[i] >> FRAME_KIND_SHIFT == FRAME_CUT);
        if (count > deepest) deepest = count;
        starts += complete;
    }
    CHECK(deepest > 30); /* the garbage was good enough to be walked */
    fprintf(stderr, "garbage stacks: deepest %lu, %lu ended well\n", (unsigned long)deepest,
        (unsigned long)starts);
    munmap(area, STACK_SIZE + 2 * 4096);
}

/* A copy of the unwind information in a block that ends where it ends, with some bytes changed. Code
 * addresses move with it, all being relative. */
static void damaged_information(const struct mapping *original, int rounds) {
    uint64_t size = original->data_high - original->header, kinds[16] = {0};
    uint8_t *copy = malloc(size);
    for (int round = 0; round < rounds; round++) {
        if (round % 16 == 0) {
            memcpy(copy, (const void *)original->header, size);
            for (uint64_t changes = random_below(size / 64 + 2); changes > 0; changes--)
                copy[64 + random_below(size - 64)] = (uint8_t)random_word();
            if (random_below(4) == 0) copy[random_below(64)] = (uint8_t)random_word();
        }
        struct mapping module = *original;
        uint64_t moved = (uint64_t)copy - original->header;
        module.start += moved;
        module.end += moved;
        module.header = module.data_low = (uint64_t)copy;
        module.data_high = (uint64_t)copy + size;
        module.permanent = 1;
        uint8_t first[MAPPING_IDENTITY_SIZE];
        CHECK(mapping_copy_header(&module, first));
        module.identity = mapping_identity(first);
        struct rule rule = {0};
        uint64_t pc = module.start + random_below(module.end - module.start);
        if (!rule_evaluate(&module, pc, &rule)) continue;
        kinds[rule_kind(rule)]++;
        if (rule_kind(rule) == RULE_CALL) CHECK(rule_base(rule) < BASE_COUNT);
    }
    CHECK(kinds[RULE_CALL] > 0);
    fprintf(stderr, "damaged information: %lu calls, %lu unknown, %lu without\n",
        (unsigned long)kinds[RULE_CALL], (unsigned long)kinds[RULE_UNKNOWN],
        (unsigned long)kinds[RULE_FRAME_POINTER]);
    free(copy);
}

static __attribute__((noinline)) void from_deep_down(int depth) {
    if (depth > 0)
        from_deep_down(depth - 1);
    else
        garbage_stacks(REPEAT(100000));
    __asm__ volatile("" ::: "memory");
}

int main(int count, char **arguments) {
    bool certain;
    unwind_start(NULL, true);
    if (count > 1) random_state = strtoull(arguments[1], NULL, 0) * 2 + 1;
    CHECK(mapping_list_find((uint64_t)&main, &code[0], &certain));
    CHECK(mapping_list_find((uint64_t)&getenv, &code[1], &certain));
    CHECK(code[0].header && code[1].header && code[0].start != code[1].start);
    unwind_stack_bounds((uint64_t)__builtin_frame_address(0), &test_low, &test_high);
    from_deep_down(32);
    for (int i = 0; i < 2; i++) damaged_information(&code[i], REPEAT(50000));
    return check_result();
}
