/* Instructions: how long they are, where they lead, what they change. */
#include "attach/bpf/instruction.h"
#include "check.h"

#include <stdlib.h>

static struct instruction decode(const char *bytes) {
    uint8_t code[32] = {0};
    size_t size = 0;
    for (char *end; *bytes; bytes = end) {
        code[size++] = (uint8_t)strtoul(bytes, &end, 16);
        if (end == bytes) break;
        while (*end == ' ') end++;
    }
    return instruction_decode(code, size, 0x1000);
}

static void test_what_a_probe_finds_at_the_start_of_functions(void) {
    struct instruction i = decode("41 54"); /* push %r12 */
    CHECK(i.kind == INSTRUCTION_PUSH && i.length == 2 && instruction_is_emulated(&i, false));
    i = decode("55"); /* push %rbp */
    CHECK(i.kind == INSTRUCTION_PUSH && i.length == 1 && i.writes == 1 << REGISTER_RSP);
    i = decode("48 85 ff"); /* test %rdi,%rdi */
    CHECK(
        i.kind == INSTRUCTION_PLAIN && i.length == 3 && i.writes == 0 && !instruction_is_emulated(&i, false));
    i = decode("0f 84 bf 00 00 00"); /* je */
    CHECK(
        i.kind == INSTRUCTION_BRANCH && i.target == 0x1000 + 6 + 0xbf && instruction_is_emulated(&i, false));
    i = decode("74 07");
    CHECK(i.kind == INSTRUCTION_BRANCH && i.target == 0x1009);
    i = decode("f3 0f 1e fa"); /* endbr64 */
    CHECK(i.length == 4 && i.writes == 0 && !instruction_is_emulated(&i, true));
    CHECK_TEXT(i.name, "endbr64");
    i = decode("80 3d 01 02 14 00 00"); /* cmpb $0,0x140201(%rip) */
    CHECK(i.length == 7 && i.writes == 0);
    i = decode("e9 fb ff ff ff"); /* jmp to itself */
    CHECK(i.kind == INSTRUCTION_JUMP && i.target == 0x1000 && instruction_is_emulated(&i, false));
    i = decode("ff 25 3b 05 04 00"); /* jmp *0x4053b(%rip) */
    CHECK(i.kind == INSTRUCTION_JUMP_SLOT && i.target == 0x1006 + 0x4053b &&
          !instruction_is_emulated(&i, false));
    i = decode("c3");
    CHECK(i.kind == INSTRUCTION_RETURN && !instruction_is_emulated(&i, false));
}

static void test_nops(void) {
    struct instruction i = decode("90");
    CHECK(i.kind == INSTRUCTION_NOP && instruction_is_emulated(&i, false));
    i = decode("0f 1f 44 00 00");
    CHECK(i.kind == INSTRUCTION_NOP5 && instruction_is_emulated(&i, true) &&
          !instruction_is_emulated(&i, false));
    i = decode("66 90"); /* the kernel does not emulate what has this prefix */
    CHECK(i.length == 2 && !instruction_is_emulated(&i, true));
    i = decode("66 2e 0f 1f 84 00 00 00 00 00");
    CHECK(i.length == 10 && i.writes == 0 && !instruction_is_emulated(&i, true));
    i = decode("41 90"); /* xchg %eax,%r8d */
    CHECK(i.writes == REGISTERS_ALL && !instruction_is_emulated(&i, true));
}

static void test_registers_that_change(void) {
    struct instruction i = decode("48 89 fb"); /* mov %rdi,%rbx */
    CHECK(i.copy_from == 7 && i.copy_to == 3 && i.writes == 1 << 3);
    i = decode("49 89 d4"); /* mov %rdx,%r12 */
    CHECK(i.copy_from == 2 && i.copy_to == 12);
    i = decode("4c 8b c7"); /* mov %rdi,%r8, the other way to write it */
    CHECK(i.copy_from == 7 && i.copy_to == 8);
    i = decode("89 fb"); /* mov %edi,%ebx: only half of it */
    CHECK(i.copy_from == -1 && i.writes == 1 << 3);
    i = decode("48 89 3c 24"); /* mov %rdi,(%rsp) */
    CHECK(i.copy_from == -1 && i.writes == 0 && i.length == 4);
    i = decode("64 48 8b 3c 25 28 00 00 00"); /* mov %fs:0x28,%rdi */
    CHECK(i.writes == 1 << 7 && i.length == 9);
    i = decode("48 83 ec 10"); /* sub $16,%rsp */
    CHECK(i.writes == 1 << REGISTER_RSP);
    i = decode("48 f7 e6"); /* mul %rsi */
    CHECK(i.writes == (1 << 0 | 1 << 2));
    i = decode("b4 01"); /* mov $1,%ah: a part of rax */
    CHECK((i.writes & 1) != 0);
    i = decode("0f 92 c0"); /* setb %al */
    CHECK(i.writes == 1);
    i = decode("48 87 fe"); /* xchg: not known, so anything */
    CHECK(i.writes == REGISTERS_ALL);
    i = decode("c5 f8 77"); /* vzeroupper */
    CHECK(i.length == 3);
    i = decode("62 f1 fe 48 6f 07"); /* vmovdqu64 (%rdi),%zmm0 */
    CHECK(i.length == 6);
}

static void test_what_is_cut_off_or_impossible(void) {
    CHECK(decode("0f 84 bf 00").kind == INSTRUCTION_UNKNOWN);
    CHECK(decode("48").kind == INSTRUCTION_UNKNOWN);
    CHECK(decode("06").kind == INSTRUCTION_UNKNOWN); /* not in 64-bit code */
    CHECK(decode("66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90").kind == INSTRUCTION_UNKNOWN);
    CHECK(instruction_decode(NULL, 0, 0).kind == INSTRUCTION_UNKNOWN);
}

/* Compares lengths and targets with objdump's over the whole C library. */
static void test_a_library_against_objdump(void) {
    FILE *pipe = popen("objdump -dw /lib/x86_64-linux-gnu/libc.so.6 2>/dev/null", "r");
    char line[1024];
    long compared = 0, wrong = 0;
    while (pipe && fgets(line, sizeof line, pipe)) {
        char *bytes = strchr(line, '\t'), *text = bytes ? strchr(bytes + 1, '\t') : NULL;
        if (!text || strstr(text, "(bad)") || strstr(text, ".byte") || strncmp(text + 1, "rex", 3) == 0)
            continue;
        *text = '\0';
        uint8_t code[32];
        size_t size = 0;
        char *at = bytes + 1;
        for (char *end; size < 16; at = end) {
            unsigned long byte = strtoul(at, &end, 16);
            if (end == at) break;
            code[size++] = (uint8_t)byte;
        }
        uint64_t address = strtoull(line, NULL, 16), target;
        struct instruction i = instruction_decode(code, size, address);
        char name[16];
        bool has_target =
            sscanf(text + 1, "%15s %lx", name, &target) == 2 &&
            (i.kind == INSTRUCTION_JUMP || i.kind == INSTRUCTION_BRANCH || i.kind == INSTRUCTION_CALL);
        if (strcmp(name, "bnd") == 0 || strcmp(name, "data16") == 0) has_target = false;
        compared++;
        if (i.length == size && (!has_target || i.target == target)) continue;
        if (wrong++ < 5) fprintf(stderr, "%s: %s (%u bytes, not %zu)\n", line, text + 1, i.length, size);
    }
    if (pipe) pclose(pipe);
    if (compared == 0)
        fprintf(stderr, "objdump or the C library is not here: not compared\n");
    else
        CHECK_EQUAL(wrong, 0);
}

int main(void) {
    test_what_a_probe_finds_at_the_start_of_functions();
    test_nops();
    test_registers_that_change();
    test_what_is_cut_off_or_impossible();
    test_a_library_against_objdump();
    return check_result();
}
