/* Stack capture inside the profiled program.
 *
 * `unwind_capture` walks the calling thread's stack from the given registers (those of the caller of malloc
 * at the moment of the call) and stores return addresses, leaf first. It takes no lock, allocates nothing,
 * reads only the thread's stack and known modules, and ends cleanly on anything it does not understand. It
 * may be entered again from a signal handler, and leaves errno alone.
 *
 *     bounds.c    which memory is this thread's stack
 *     capture.c   the walk: look up the rule of a pc, apply it, repeat
 *     cache.h     pc → rule, lock-free
 *     rule.c      the rule of a pc, from the module's .eh_frame (cold)
 *     epilogue.c  the way out of generated code that is about to return
 *     modules.c   which module covers a pc, from /proc/self/maps (colder)
 *     memory.c    reads that cannot fault */
#ifndef MALLOSCOPE_UNWIND_UNWIND_H
#define MALLOSCOPE_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

/* The registers of a frame that survive calls, as saved by the hooks' entry code (hook/entry.S). On x86-64
 * `pc` is the return address of the hooked call and `sp` the stack pointer after that return. */
struct unwind_registers {
    uint64_t pc, sp, fp;              /* rip, rsp, rbp | pc, sp, x29 */
    uint64_t rbx, r12, r13, r14, r15; /* x86-64 only */
};

/* The thread's stack: every read lies in [low, high). What lies below `proven` is known to be readable; above
 * it each page is tried (at the price of a system call) before it is read. */
struct unwind_bounds {
    uint64_t low, high, proven;
};

/* The bounds of the stack that `sp` points into. `cached_low` and `cached_high` are two words of the calling
 * thread, zero at first, in which what was found is kept. */
struct unwind_bounds unwind_stack_bounds(uint64_t sp, uint64_t *cached_low, uint64_t *cached_high);

/* Stores at most `max` words into `frames`: return addresses, `frames[0]` is `registers->pc`. Returns their
 * number. A pc that was interrupted by a signal is stored as pc + 1, so that every word is looked up one byte
 * earlier. Of a deeper stack the leaf half and the root half are kept, and `frames[max / 2]` is the word
 * FRAME_CUT << FRAME_KIND_SHIFT. `*ret_complete` says whether the walk reached the start of the thread. */
uint32_t unwind_capture(const struct unwind_registers *registers, struct unwind_bounds bounds,
    uint64_t *frames, uint32_t max, bool *ret_complete);

/* What a walk depended on: if another walk starts from the same registers and finds the same words in the
 * same places, it comes to the same frames and need not be made. */
#define TRACE_WORDS 126

struct unwind_trace {
    bool whole;   /* this is all that the walk depended on */
    bool uses_fp; /* it did depend on the frame pointer that it started from */
    uint32_t count;
    uint32_t place[TRACE_WORDS]; /* distance from the stack pointer, in words */
    uint64_t word[TRACE_WORDS];
};

/* unwind_capture that fills `ret_trace` too. */
uint32_t unwind_capture_traced(const struct unwind_registers *registers, struct unwind_bounds bounds,
    uint64_t *frames, uint32_t max, bool *ret_complete, struct unwind_trace *ret_trace);

/* To be called once, in the first hooked call of malloc and no later: dlopen allocates before it maps
 * anything, so whatever is mapped then belongs to the program from its start, stays for ever and is read
 * faster. Without this call all works, and new code costs some microseconds more. */
void unwind_start(void);

/* May be called after a dlclose, so that a library that takes the place of another is noticed at once and not
 * when its content turns out to be another. It only sets a flag: the next capture looks. */
void unwind_modules_changed(void);

/* To be called in the child after a fork: what the parent's other threads were doing ends there. */
void unwind_forked(void);

#endif
