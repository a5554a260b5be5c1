/* Stack capture inside the profiled program.
 *
 * `unwind_capture` walks the calling thread's stack from the given registers (those of the caller of malloc at
 * the moment of the call) and stores return addresses, leaf first. It takes no lock, allocates nothing, reads
 * only the thread's stack and known modules, and ends cleanly on anything it does not understand. */
#ifndef MALLOSCOPE_UNWIND_UNWIND_H
#define MALLOSCOPE_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

/* The registers of a frame that survive calls, as saved by the hooks' entry code (hook/entry.S). On x86-64 `pc` is the
 * return address of the hooked call and `sp` the stack pointer after that return. */
struct unwind_registers {
    uint64_t pc, sp, fp; /* rip, rsp, rbp | pc, sp, x29 */
    uint64_t rbx, r12, r13, r14, r15; /* x86-64 only */
};

struct unwind_bounds {
    uint64_t low, high; /* the thread's stack: every read lies in [low, high) */
};

/* Stores at most `max` return addresses into `frames`; `frames[0]` is `registers->pc`. Returns their number.
 * `*ret_complete` says whether the walk reached the start of the thread (or of main's caller). */
uint32_t unwind_capture(const struct unwind_registers *registers, struct unwind_bounds bounds, uint64_t *frames,
    uint32_t max, bool *ret_complete);

#endif
