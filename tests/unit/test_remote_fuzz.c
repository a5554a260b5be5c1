/* Nothing makes the walker of other processes crash, hang or keep memory: garbage registers and stacks,
 * damaged files, files that are cut short while they are in use. Built with the address and undefined
 * behaviour sanitizers. Arguments: files to damage, besides this program and libc; FUZZ_SEED gives other
 * garbage. The process that is walked is this one. */
#include "check.h"
#include "test_unwind.h"

#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/remote/remote.h"
#include "core/recording.h"

#define STACK_SIZE  (16 * 4096)
#define READS_STACK __attribute__((no_sanitize("address"), noinline))

static uint64_t random_state = 1;
static struct remote *remote;
static struct { uint64_t stacks, complete, lost, cut_short, deepest; } seen;

static uint64_t random_word(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * UINT64_C(0x2545f4914f6cdd1d);
}

static uint64_t random_below(uint64_t limit) {
    return random_word() % limit;
}

/* ---- Stacks ---- */

static uint64_t stack[STACK_SIZE / 8];
static uint64_t stack_address; /* where it is said to be */

static const struct remote_module *random_module(void) {
    return remote_module_at(remote, (uint32_t)random_below(remote_module_count(remote)));
}

/* What lies on a stack: mostly what looks right. */
static uint64_t plausible_word(void) {
    const struct remote_module *module = random_module();
    switch (random_below(8)) {
    case 0:
        return random_word();
    case 1:
        return random_below(4096);
    case 2:
        return (uint64_t)-random_below(4096);
    case 3:
    case 4:
        return stack_address + random_below(STACK_SIZE / 8 + 100) * 8 - 400;
    case 5:
        return stack_address + random_below(STACK_SIZE);
    default:
        return module->start + random_below(module->end - module->start);
    }
}

static void unwind_checked(const struct unwind_registers *registers, uint32_t size) {
    uint64_t frames[66];
    enum remote_end end;
    uint32_t max = (uint32_t)random_below(65);
    memset(frames, 0xff, sizeof frames);
    /* In a block of its own, so that reading beyond it is noticed. */
    uint8_t *copy = malloc(size + 1);
    memcpy(copy + 1, stack, size);
    uint32_t count = remote_unwind(remote, registers, copy + 1, size, frames, max, &end);
    free(copy);
    CHECK(count <= max && frames[max] == UINT64_MAX);
    for (uint32_t i = 0; i < count; i++)
        CHECK(frames[i] >> 48 == 0 || frames[i] == (uint64_t)FRAME_CUT << FRAME_KIND_SHIFT);
    seen.stacks++;
    seen.complete += end == REMOTE_COMPLETE;
    seen.lost += end == REMOTE_LOST;
    seen.cut_short += end == REMOTE_SHORT;
    if (count > seen.deepest) seen.deepest = count;
}

static READS_STACK void own_stack(struct unwind_registers *registers) {
    registers_take(registers);
    stack_address = registers->sp;
    for (uint64_t i = 0; i < STACK_SIZE / 8 && registers->sp + i * 8 < test_high; i++)
        stack[i] = ((const uint64_t *)registers->sp)[i];
}

static void garbage_stack(struct unwind_registers *registers) {
    uint64_t *word = (uint64_t *)registers;
    for (unsigned i = 0; i < sizeof *registers / 8; i++) word[i] = plausible_word();
    if (random_below(4)) registers->sp = stack_address;
    if (random_below(4)) registers->fp = registers->sp + random_below(64) * 8;
}

static void garbage_stacks(int rounds) {
    struct unwind_registers registers;
    for (int round = 0; round < rounds; round++) {
        if (random_below(4) == 0) {
            own_stack(&registers);
            for (uint64_t changes = random_below(8); changes > 0; changes--)
                stack[random_below(random_below(2) ? STACK_SIZE / 8 : 64)] = plausible_word();
        } else {
            if (round % 64 < 2)
                for (int i = 0; i < STACK_SIZE / 8; i++) stack[i] = plausible_word();
            garbage_stack(&registers);
        }
        unwind_checked(&registers,
            random_below(2) ? STACK_SIZE : (uint32_t)random_below(random_below(2) ? STACK_SIZE : 200));
    }
}

static __attribute__((noinline)) void from_deep_down(int depth) {
    if (depth > 0)
        from_deep_down(depth - 1);
    else
        garbage_stacks(100000);
    __asm__ volatile("" ::: "memory");
}

/* ---- Files ---- */

static int damaged_file = -1;
static char damaged_path[] = "/tmp/test_remote_fuzz.XXXXXX";

struct original {
    uint8_t *bytes;
    uint64_t size;
    Elf64_Phdr code;
    uint64_t interesting[8]; /* offsets of what is read: headers and unwind information */
    unsigned interesting_count;
};

static void note_interesting(struct original *original, uint64_t offset) {
    if (original->interesting_count < 8) original->interesting[original->interesting_count++] = offset;
}

static bool original_read(const char *path, struct original *ret_original) {
    struct original original = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    original.size = (uint64_t)lseek(file, 0, SEEK_END);
    original.bytes = malloc(original.size);
    bool whole = pread(file, original.bytes, original.size, 0) == (ssize_t)original.size;
    close(file);
    Elf64_Ehdr elf;
    memcpy(&elf, original.bytes, sizeof elf);
    note_interesting(&original, 0);
    note_interesting(&original, elf.e_phoff);
    note_interesting(&original, elf.e_shoff);
    for (unsigned i = 0; i < elf.e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, original.bytes + elf.e_phoff + i * sizeof segment, sizeof segment);
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X)) original.code = segment;
        if (segment.p_type == PT_GNU_EH_FRAME) {
            note_interesting(&original, segment.p_offset);
            note_interesting(&original, segment.p_offset + segment.p_filesz);
        }
        if (segment.p_type == PT_NOTE) note_interesting(&original, segment.p_offset);
    }
    *ret_original = original;
    return whole && original.code.p_filesz > 0;
}

static void damage(const struct original *original) {
    static const uint64_t extremes[] = {
        0, 1, 7, 0x7fffffff, 0xffffffff, UINT64_MAX >> 1, UINT64_MAX, UINT64_MAX - 4096};
    for (uint64_t changes = 1 + random_below(6); changes > 0; changes--) {
        uint64_t at = random_below(4) ? original->interesting[random_below(original->interesting_count)] +
                                            random_below(random_below(2) ? 64 : 1200)
                                      : random_below(original->size);
        uint64_t word = random_below(2) ? extremes[random_below(8)] : random_word();
        uint64_t size = UINT64_C(1) << random_below(4);
        if (size > 1) at &= ~(size - 1); /* where a field is */
        if (at + size <= original->size) CHECK(pwrite(damaged_file, &word, size, (off_t)at) == (ssize_t)size);
    }
    if (random_below(8) == 0) CHECK(ftruncate(damaged_file, (off_t)random_below(original->size)) == 0);
}

static void restore(const struct original *original) {
    CHECK(ftruncate(damaged_file, 0) == 0);
    CHECK(pwrite(damaged_file, original->bytes, original->size, 0) == (ssize_t)original->size);
}

/* Its code becomes a module of this process, but is never run. */
static void damaged_files(const struct original *original, int rounds) {
    uint64_t offset = original->code.p_offset & ~UINT64_C(4095);
    uint64_t size = (original->code.p_offset - offset + original->code.p_filesz + 4095) & ~UINT64_C(4095);
    uint64_t rules = remote_figures(remote).rules;
    for (int round = 0; round < rounds; round++) {
        if (round % 8 == 0) restore(original);
        damage(original);
        void *code = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, damaged_file, (off_t)offset);
        CHECK(code != MAP_FAILED);
        remote_refresh(remote);
        /* While it is in use, it changes or becomes shorter. */
        for (int change = 0; change < 2; change++) {
            for (int walk = 0; walk < 20; walk++) {
                struct unwind_registers registers;
                for (int i = 0; i < 64; i++)
                    stack[i] = random_below(2) ? plausible_word() : (uint64_t)code + random_below(size);
                garbage_stack(&registers);
                registers.pc = (uint64_t)code + random_below(size);
                unwind_checked(&registers, 512);
            }
            damage(original);
        }
        munmap(code, size);
    }
    CHECK(
        remote_figures(remote).rules > rules + (uint64_t)rounds); /* they were good enough to be looked at */
}

/* ---- What must not grow ---- */

static unsigned entries_of(const char *folder) {
    unsigned count = 0;
    DIR *entries = opendir(folder);
    while (entries && readdir(entries)) count++;
    if (entries) closedir(entries);
    return count;
}

int main(int count, char **arguments) {
    if (getenv("FUZZ_SEED")) random_state = strtoull(getenv("FUZZ_SEED"), NULL, 0) * 2 + 1;
    unwind_stack_bounds((uint64_t)__builtin_frame_address(0), &test_low, &test_high);
    CHECK(test_high != 0);
    unsigned descriptors = entries_of("/proc/self/fd"), mappings = entries_of("/proc/self/map_files");
    int r = remote_open(getpid(), &remote);
    CHECK_EQUAL(r, 0);
    if (r < 0) return check_result();
    stack_address = (uint64_t)&r & ~UINT64_C(7);
    from_deep_down(32);
    fprintf(stderr, "garbage: %lu stacks, %lu complete, %lu lost, %lu too short, deepest %lu\n",
        (unsigned long)seen.stacks, (unsigned long)seen.complete, (unsigned long)seen.lost,
        (unsigned long)seen.cut_short, (unsigned long)seen.deepest);
    CHECK(seen.deepest > 30 && seen.complete > 100 && seen.cut_short > 100);

    damaged_file = mkstemp(damaged_path);
    CHECK(damaged_file >= 0);
    Dl_info libc;
    CHECK(dladdr((void *)(uintptr_t)&getenv, &libc) != 0);
    for (int i = -1; i < count; i++) {
        struct original original;
        if (!CHECK(original_read(i < 0 ? libc.dli_fname : i ? arguments[i] : "/proc/self/exe", &original)))
            continue;
        damaged_files(&original, 300);
        free(original.bytes);
    }
    fprintf(stderr, "with damaged files: %lu stacks, %lu rules\n", (unsigned long)seen.stacks,
        (unsigned long)remote_figures(remote).rules);
    close(damaged_file);
    unlink(damaged_path);
    remote_close(remote);
    CHECK_EQUAL(entries_of("/proc/self/fd"), descriptors);
    /* The sanitizer maps some for itself. */
    CHECK(entries_of("/proc/self/map_files") < mappings + 100);
    return check_result();
}
