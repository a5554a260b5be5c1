/* The edges: stacks deeper than asked for, code without unwind information, the bounds of a stack, fork. */
#include "check.h"
#include "test_unwind.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "core/recording.h"

#define CUT ((uint64_t)FRAME_CUT << FRAME_KIND_SHIFT)

static uint64_t whole[4096], part[4096];
static uint32_t whole_count, part_count;
static bool whole_complete, part_complete;

static __attribute__((noinline)) void capture_both(uint32_t max) {
    struct unwind_registers registers;
    registers_take(&registers);
    struct unwind_bounds bounds = unwind_stack_bounds(registers.sp, &test_low, &test_high);
    memset(part, 0xff, sizeof part);
    whole_count = unwind_capture(&registers, bounds, whole, 4096, &whole_complete);
    part_count = unwind_capture(&registers, bounds, part, max, &part_complete);
}

static __attribute__((noinline)) void descend(int depth, uint32_t max) {
    char room[16];
    memset(room, depth, sizeof room);
    __asm__ volatile("" ::"r"(room) : "memory");
    if (depth == 0)
        capture_both(max);
    else if (depth % 3)
        descend(depth - 1, max);
    else
        descend(depth - 1, max + 0 * (uint32_t)room[1]);
    __asm__ volatile("" ::: "memory");
}

static void cuts(void) {
    for (uint32_t max = 1; max <= 80; max++) {
        descend(60, max);
        CHECK(whole_complete && whole_count > 60 && whole_count < 80);
        CHECK(part_count == (whole_count < max ? whole_count : max));
        CHECK(part[max] == UINT64_MAX); /* nothing is written beyond */
        CHECK(part_complete);
        if (whole_count <= max) {
            CHECK(memcmp(whole, part, whole_count * 8) == 0);
            continue;
        }
        uint32_t leaf = max / 2, root = max - leaf - 1;
        CHECK(memcmp(whole, part, leaf * 8) == 0);
        CHECK(part[leaf] == CUT);
        CHECK(memcmp(whole + whole_count - root, part + leaf + 1, root * 8) == 0);
    }
    descend(2000, 256);
    CHECK(whole_count > 2000 && part_count == 256 && part[128] == CUT && part_complete);
    CHECK(memcmp(whole + whole_count - 127, part + 129, 127 * 8) == 0);
    descend(2000, 0);
    CHECK(part_count == 0 && !part_complete);
}

/* A stack of 300,000 frames: the walk gives up in the middle, says so and keeps the leaf. */
static void *endless(void *argument) {
    (void)argument;
    test_low = test_high = 0;
    descend(300000, 64);
    CHECK(!part_complete && part_count == 33 && part[32] == CUT);
    CHECK(!whole_complete && whole_count == 2049 && whole[2048] == CUT);
    CHECK(memcmp(whole, part, 32 * 8) == 0);
    return NULL;
}

static void too_deep(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    uint64_t low = test_low, high = test_high;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 20);
    CHECK(pthread_create(&thread, &attributes, endless, NULL) == 0);
    pthread_join(thread, NULL);
    test_low = low;
    test_high = high;
}

/* Code that calls the function in its second argument, with the first, from frames of different kinds. */
struct generated_code {
    _Alignas(4) uint8_t bytes[48];
    uint8_t size, return_offset;
};

static const struct generated_code generated_kinds[] = {
#if defined(__x86_64__)
    /* push %rbp; mov %rsp,%rbp; call; nop; pop %rbp; ret: told by the frame pointer alone */
    {{0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x90, 0x5d, 0xc3}, 9, 6},
    /* sub $8,%rsp; call; add $8,%rsp; ret: a trampoline of CPython */
    {{0x48, 0x83, 0xec, 0x08, 0xff, 0xd6, 0x48, 0x83, 0xc4, 0x08, 0xc3}, 11, 6},
    /* push %rbp; push %rbx; push %r12; sub $16,%rsp; mov $1,%ebp; call; add $16,%rsp; pop all; rep ret */
    {{0x55, 0x53, 0x41, 0x54, 0x48, 0x83, 0xec, 0x10, 0xbd, 1, 0, 0, 0, 0xff, 0xd6, 0x48, 0x83, 0xc4, 0x10,
         0x41, 0x5c, 0x5b, 0x5d, 0xf3, 0xc3},
        25, 15},
    /* the same with 144 bytes, in forms that hold such numbers: the return address stays where it was */
    {{0x55, 0x53, 0x48, 0x81, 0xec, 0x98, 0, 0, 0, 0x31, 0xed, 0x66, 0x90, 0xff, 0xd6, 0x48, 0x81, 0xc4, 0x98,
         0, 0, 0, 0x5b, 0x5d, 0xc3},
        25, 15},
    /* push %rbp; sub $16,%rsp; mov $1,%ebp; call; lea 16(%rsp),%rsp; pop %rbp; ret */
    {{0x55, 0x48, 0x83, 0xec, 0x10, 0xbd, 1, 0, 0, 0, 0xff, 0xd6, 0x48, 0x8d, 0x64, 0x24, 0x10, 0x5d, 0xc3},
        19, 12},
#else
    /* stp x29,x30,[sp,-16]!; mov x29,sp; blr; nop; ldp x29,x30,[sp],16; ret: by the frame pointer */
    {{0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x20, 0x00, 0x3f, 0xd6, 0x1f, 0x20, 0x03, 0xd5, 0xfd,
         0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6},
        24, 12},
    /* the same with 96 bytes: the frame record is at the lower end, and the caller's frame further up */
    {{0xfd, 0x7b, 0xba, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x20, 0x00, 0x3f, 0xd6, 0xfd, 0x7b, 0xc6, 0xa8, 0xc0,
         0x03, 0x5f, 0xd6},
        20, 12},
    /* paciasp; sub sp,sp,64; stp x29,x30,[sp,32]; add x29,sp,32; blr; ldp; add; autiasp; ret: it is in the
     * middle, and the return address is signed */
    {{0x3f, 0x23, 0x03, 0xd5, 0xff, 0x03, 0x01, 0xd1, 0xfd, 0x7b, 0x02, 0xa9, 0xfd, 0x83, 0x00, 0x91, 0x20,
         0x00, 0x3f, 0xd6, 0xfd, 0x7b, 0x42, 0xa9, 0xff, 0x03, 0x01, 0x91, 0xbf, 0x23, 0x03, 0xd5, 0xc0, 0x03,
         0x5f, 0xd6},
        36, 20},
#endif
};

static void capture_from_generated_code(uint64_t max) {
    capture_both((uint32_t)max);
    __asm__ volatile("" ::: "memory");
}

static void run_generated(const uint8_t *code, const struct generated_code *kind) {
    ((void (*)(uint64_t, void (*)(uint64_t)))code)(64, capture_from_generated_code);
    CHECK(whole_complete);
    CHECK(whole_count > 3 && whole[2] == (uint64_t)code + kind->return_offset);
}

static void generated(void) {
    enum { KINDS = sizeof generated_kinds / sizeof *generated_kinds, PAGE = 4096 };
    for (int round = 0; round < 3; round++) /* at a new place each time: the maps are read again */
        for (int i = 0; i < KINDS; i++) {
            const struct generated_code *kind = &generated_kinds[i];
            uint8_t *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            mprotect(page + PAGE, PAGE, PROT_NONE);
            uint8_t *code = round == 2 ? page + PAGE - kind->size : page; /* or right before the end */
            memcpy(code, kind->bytes, kind->size);
            __builtin___clear_cache((char *)code, (char *)code + kind->size);
            mprotect(page, PAGE, PROT_READ | PROT_EXEC);
            run_generated(code, kind);
        }
    /* All kinds in one page, one after the other: what the walk knew of the code before must not count. */
    uint8_t *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int round = 0; round < 3 * KINDS; round++) {
        const struct generated_code *kind = &generated_kinds[round % KINDS];
        memset(code, 0xcc, PAGE);
        memcpy(code, kind->bytes, kind->size);
        __builtin___clear_cache((char *)code, (char *)code + PAGE);
        run_generated(code, kind);
    }
}

/* On a stack of which nothing is known beforehand, too. */
static ucontext_t main_context, other_context;

static void generated_elsewhere(void) {
    static char stack[256 * 1024] __attribute__((aligned(16)));
    getcontext(&other_context);
    other_context.uc_stack.ss_sp = stack;
    other_context.uc_stack.ss_size = sizeof stack;
    other_context.uc_link = &main_context;
    makecontext(&other_context, generated, 0);
    swapcontext(&main_context, &other_context);
}

/* The highest addresses that a program's code can have are taken for such, and none above. */
static void highest_addresses(void) {
#if defined(__x86_64__)
    const uint64_t highest = (UINT64_C(1) << 47) - 4096;
#else
    const uint64_t highest = (UINT64_C(1) << 48) - 4096;
#endif
    struct unwind_registers registers;
    registers_take(&registers);
    struct unwind_bounds bounds = unwind_stack_bounds(registers.sp, &test_low, &test_high);
    registers.pc = highest;
    CHECK(unwind_capture(&registers, bounds, part, 4096, &part_complete) == 1 && part[0] == highest);
    registers.pc = highest + 4096;
    CHECK(unwind_capture(&registers, bounds, part, 4096, &part_complete) == 0);
}

static void bounds(void) {
    uint64_t low = 0, high = 0, here = (uint64_t)__builtin_frame_address(0);
    struct unwind_bounds own = unwind_stack_bounds(here, &low, &high);
    CHECK(own.low == here && own.high > here && own.proven == own.high);
    CHECK(low <= here && high == own.high);

    char *block = malloc(100000);
    struct unwind_bounds foreign = unwind_stack_bounds((uint64_t)block, &low, &high);
    CHECK(foreign.low == (uint64_t)block && foreign.proven == foreign.low);
    CHECK(high == own.high); /* what is known of the thread's own stack stays */
    free(block);

    struct unwind_bounds nothing = unwind_stack_bounds(UINT64_MAX - 16, &low, &high);
    CHECK(nothing.low == nothing.high);
}

static void *thread_bounds(void *argument) {
    (void)argument;
    uint64_t low = 0, high = 0, here = (uint64_t)__builtin_frame_address(0);
    struct unwind_bounds own = unwind_stack_bounds(here, &low, &high);
    void *stack;
    size_t size;
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &stack, &size);
    CHECK(own.proven == own.high);
    CHECK(own.high <= (uint64_t)stack + size && own.high > here);
    CHECK(low >= (uint64_t)stack);
    pthread_attr_destroy(&attributes);

    /* In a child that was forked from a thread, that thread's stack is still known. */
    pid_t child = fork();
    if (child == 0) {
        unwind_forked();
        bool known = unwind_stack_bounds(here, &low, &high).proven == own.high;
        _exit(known && stack_agrees() ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
    return NULL;
}

int main(void) {
    pthread_t thread;
    cuts();
    too_deep();
    generated();
    generated_elsewhere();
    highest_addresses();
    bounds();
    pthread_create(&thread, NULL, thread_bounds, NULL);
    pthread_join(thread, NULL);
    return check_result();
}
