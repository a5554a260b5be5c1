/* What the tests of stack capture share: taking the registers where we are, and comparing the walk with
 * libgcc's. */
#ifndef MALLOSCOPE_TESTS_UNWIND_H
#define MALLOSCOPE_TESTS_UNWIND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>

#ifdef __cplusplus
extern "C" {
#endif
#include "unwind/unwind.h"

/* The registers as they are after the return from this call, as the hooks' entry code takes them. */
void registers_take(struct unwind_registers *registers);
#ifdef __cplusplus
}
#endif

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".weak registers_take\n"
        ".type registers_take, @function\n"
        "registers_take:\n"
        "    .cfi_startproc\n"
        "    mov (%rsp), %rax\n"
        "    mov %rax, 0(%rdi)\n"
        "    lea 8(%rsp), %rax\n"
        "    mov %rax, 8(%rdi)\n"
        "    mov %rbp, 16(%rdi)\n"
        "    mov %rbx, 24(%rdi)\n"
        "    mov %r12, 32(%rdi)\n"
        "    mov %r13, 40(%rdi)\n"
        "    mov %r14, 48(%rdi)\n"
        "    mov %r15, 56(%rdi)\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".popsection\n");
#else
__asm__(".pushsection .text\n"
        ".weak registers_take\n"
        ".type registers_take, %function\n"
        ".p2align 2\n"
        "registers_take:\n"
        "    .cfi_startproc\n"
        "    mov x1, sp\n"
        "    stp x30, x1, [x0]\n"
        "    str x29, [x0, #16]\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".popsection\n");
#endif

#define TEST_FRAMES 512

struct reference {
    uint64_t frames[TEST_FRAMES];
    uint32_t count;
};

static _Unwind_Reason_Code reference_add(struct _Unwind_Context *context, void *data) {
    struct reference *reference = (struct reference *)data;
    int before = 0;
    uint64_t pc = _Unwind_GetIPInfo(context, &before);
    if (reference->count == TEST_FRAMES) return _URC_END_OF_STACK;
    /* What was interrupted is called by the signal trampoline, to which no call returns either. */
    if (before && reference->count) reference->frames[reference->count - 1]++;
    if (pc) reference->frames[reference->count++] = pc + (before != 0);
    return _URC_NO_REASON;
}

static uint64_t test_low, test_high;      /* of the main thread */
static volatile uint64_t compared_stacks; /* also by signal handlers */
static uint64_t compared_frames;
static bool in_coroutine; /* whose outermost frame is where makecontext has it return to, by no call */

static void print_frames(const char *title, const uint64_t *frames, uint32_t count) {
    fprintf(stderr, "%s:", title);
    for (uint32_t i = 0; i < count; i++) fprintf(stderr, " %lx", (unsigned long)frames[i]);
    fprintf(stderr, "\n");
}

/* Walks from here in both ways. From the second frame on (the first is this function, at two places) they
 * must be the same. The arrays are static, to leave room on small stacks. */
static __attribute__((noinline)) bool same_as_libgcc(
    bool complete_expected, uint64_t *cached_low, uint64_t *cached_high) {
    static __thread struct reference reference;
    static __thread uint64_t frames[TEST_FRAMES];
    struct unwind_registers registers;
    bool complete;
    registers_take(&registers);
    uint32_t count = unwind_capture(&registers, unwind_stack_bounds(registers.sp, cached_low, cached_high),
        frames, TEST_FRAMES, &complete);
    reference.count = 0;
    _Unwind_Backtrace(reference_add, &reference);
    if (in_coroutine && reference.count) reference.frames[reference.count - 1]++;
    bool same = count == reference.count && complete == complete_expected;
    for (uint32_t i = 1; same && i < count; i++) same = frames[i] == reference.frames[i];
    compared_stacks++;
    compared_frames += count;
    if (!same) {
        fprintf(stderr, "complete: %d\n", complete);
        print_frames("ours  ", frames, count);
        print_frames("libgcc", reference.frames, reference.count);
    }
    return same;
}

static __attribute__((noinline, unused)) bool stack_agrees(void) {
    bool same = same_as_libgcc(true, &test_low, &test_high);
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return same;
}

#endif
