/* Puts the stack of an allocation into its event. */
#ifndef MALLOSCOPE_ATTACH_BPF_STACK_BPF_H
#define MALLOSCOPE_ATTACH_BPF_STACK_BPF_H

#include "threads.bpf.h"

/* Hides from the compiler what it knows about a value. With that knowledge the compiler would use instructions
 * that BPF does not have, or compute addresses in an order in which the kernel's verifier loses track of their
 * bounds. */
#define opaque(value) asm volatile("" : "+r"(value))

#define FRAMES_MAX 128

/* A large local array that was never written to has no memory yet, so the stack has a hole there. The hole
 * becomes zeros in the copy, and the frames above it are copied. Reading goes in pieces that begin at multiples
 * of PIECE, so that no piece lies partly in a hole. `told->stack` must have PIECE bytes more than `room`. Returns
 * the size of the copy. */
#define PIECE 1024

static __always_inline __u64 copy_around_holes(
    struct event_allocation *told, __u64 wanted, const __u64 room, bool is_own) {
    __u64 sp = told->registers.sp, at = PIECE - (sp & (PIECE - 1));
    opaque(at);
    if (at > PIECE || bpf_probe_read_user(told->stack, at, (void *)sp)) return 0;
    for (__u64 i = 0; i < room / PIECE && at < wanted; i++) {
        opaque(at);
        if (at > room) break;
        /* A stack that is not the thread's own (`is_own`) has no known end: it ends where nothing can be read. */
        if (bpf_probe_read_user(told->stack + at, PIECE, (void *)(sp + at)) && !is_own) return at;
        at += PIECE;
    }
    return at < wanted ? at : wanted;
}

/* Copies only what lies in the same page as the stack pointer: a small stack has no room for the pieces above. */
static __always_inline __u64 copy_page(struct event_allocation *told, __u64 wanted, const __u64 room) {
    __u64 sp = told->registers.sp, size = 4096 - (sp & 4095);
    if (size > wanted) size = wanted;
    opaque(size);
    return size <= room && bpf_probe_read_user(told->stack, size, (void *)sp) == 0 ? size : 0;
}

/* Copies `wanted` bytes, or `room` if that is less. */
static __always_inline void copy_stack(
    struct event_allocation *told, __u64 wanted, const __u64 room, bool is_own) {
    if (wanted > room) wanted = room;
    if (bpf_probe_read_user(told->stack, wanted, (void *)told->registers.sp)) {
        wanted =
            room >= 4 * PIECE ? copy_around_holes(told, wanted, room, is_own) : copy_page(told, wanted, room);
        told->stack_flags |= EVENT_STACK_HOLES;
        count(COUNT_STACK_HOLES);
    }
    told->stack_size = wanted;
}

/* Follows frame pointers from the caller's frame outwards. */
static __always_inline void walk_frames(struct event_allocation *told) {
    __u64 *frames = (__u64 *)told->stack, bp = told->registers.bp, low = told->registers.sp;
    frames[0] = told->registers.ip;
    __u32 depth = 1;
    for (; depth < FRAMES_MAX; depth++) {
        struct {
            __u64 next, return_address;
        } frame;
        if (bp < low || (bp & 7) || bpf_probe_read_user(&frame, sizeof frame, (void *)bp)) break;
        if (frame.return_address == 0) break;
        frames[depth] = frame.return_address;
        low = bp + 16;
        bp = frame.next;
    }
    if (depth == FRAMES_MAX) {
        told->stack_flags |= EVENT_STACK_CUT;
        count(COUNT_STACKS_CUT);
    }
    told->stack_kind = EVENT_STACK_FRAMES;
    told->stack_size = depth * sizeof *frames;
}

#endif
