/* Stack capture inside the profiled program.
 *
 * `unwind_capture` walks the calling thread's stack from the given registers (those of the caller of malloc
 * at the moment of the call) and stores return addresses, leaf first. It takes no lock, allocates nothing,
 * reads only the thread's stack and known modules, and ends cleanly on anything it does not understand. It
 * may be entered again from a signal handler, and leaves errno alone.
 *
 *     stack_bounds.c    which memory is this thread's stack
 *     capture.c   the walk: look up the rule of a pc, apply it, repeat
 *     rule_cache.h     pc → rule, lock-free
 *     rule.c      the rule of a pc, from the mapping's .eh_frame (cold)
 *     epilogue.c  the way out of generated code that is about to return
 *     mapping_list.c   which mapping covers a pc, from /proc/self/maps (colder)
 *     memory.c    reads that cannot fault */
#ifndef MALLOSCOPE_UNWIND_UNWIND_H
#define MALLOSCOPE_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

/* The registers of a frame that survive calls, as saved by the hooks' entry code (record/intercept/entry_*.S). `pc` is
 * the return address of the hooked call and `sp` the stack pointer after that return. */
struct unwind_registers {
    uint64_t pc, sp, fp; /* rip, rsp, rbp | x30, sp, x29 */
#if defined(__x86_64__)
    uint64_t rbx, r12, r13, r14, r15; /* on aarch64 no frame is found from other registers */
#endif
};

/* The thread's stack: every read lies in [low, high). What lies below `proven` is known to be readable; above
 * it each page is tried (at the price of a system call) before it is read. */
struct unwind_bounds {
    uint64_t low, high, proven;
};

/* The bounds of the stack that `sp` points into. `cached_low` and `cached_high` are two words of the calling
 * thread, zero at first, in which what was found is kept. */
struct unwind_bounds unwind_stack_bounds(uint64_t sp, uint64_t *cached_low, uint64_t *cached_high);

/* Stores at most `max` frame words (core/recording.h) into `frames`, the leaf first: return addresses,
 * `frames[0]` is `registers->pc`; in modules that have a number (see unwind_start) the number and the place
 * in the mapping. Returns how many they are. A pc that was interrupted by a signal, or that begins a function
 * to which the stack was made to return, is stored as pc + 1, so that every word is looked up one byte
 * earlier. Of a deeper stack the leaf half and the root half are kept, and `frames[max / 2]` is the word
 * FRAME_CUT << FRAME_KIND_SHIFT. `*ret_complete` says whether the walk reached the start of the thread. */
uint32_t unwind_capture(const struct unwind_registers *registers, struct unwind_bounds bounds,
    uint64_t *frames, uint32_t max, bool *ret_complete);

/* What a walk depended on: if another walk starts from the same registers and finds the same words in the
 * same places, it comes to the same frames and need not be made. */
#define TRACE_WORDS 128

struct unwind_trace {
    bool whole;   /* this is all that the walk depended on; not if it came through a signal frame */
    bool uses_fp; /* it did depend on the frame pointer that it started from */
    uint32_t count;
    uint32_t place[TRACE_WORDS]; /* distance from the stack pointer, in words */
    uint64_t word[TRACE_WORDS];
};

/* unwind_capture that also fills `places`, with the stack pointer of each frame at its call (UINT64_MAX
 * beside FRAME_CUT), and `ret_trace`; either may be NULL. `*ret_in_handler` says whether the walk came
 * through a signal frame: what the thread was doing outside of it may be half done. */
uint32_t unwind_capture_traced(const struct unwind_registers *registers, struct unwind_bounds bounds,
    uint64_t *frames, uint64_t *places, uint32_t max, bool *ret_complete, bool *ret_in_handler,
    struct unwind_trace *ret_trace);

/* The word for a frame that returns to `address`. */
uint64_t unwind_frame_word(uint64_t address);

/* Told of every mapping that the capture comes to know, before a frame in it is stored. Returns the number by
 * which frames are to name it, or one of these. May be asked of the same mapping several times, and by several
 * threads at once. */
#define UNWIND_BY_ADDRESS (UINT32_MAX - 1) /* frames are plain addresses */
#define UNWIND_NOT_NOTED  UINT32_MAX       /* the same, and it is to be told again */
struct mapped_code;                        /* platform/maps.h */
typedef uint32_t unwind_note(const struct mapped_code *code);

/* To be called once. `early`: in the first hooked call of malloc and no later: dlopen allocates before it
 * maps anything, so whatever is mapped then belongs to the program from its start, stays for ever and is read
 * faster. Without this call all works, and new code costs some microseconds more. `note` may be NULL. */
void unwind_start(unwind_note *note, bool early);

/* To be called around every dlclose, so that a library that takes the place of another is known to be
 * another. The first returns what the second is to be given; `unloaded`: something was unmapped. While a
 * library is being closed, captures are careful, and take some microseconds. */
uint64_t unwind_closing_begin(void);
void unwind_closing_end(uint64_t begun, bool unloaded);

/* A number that stays the same for as long as a capture that finds the same words on the stack would store
 * the same frames; 0 while that is not certain. */
uint64_t unwind_epoch(void);

/* To be called in the child after a fork: what the parent's other threads were doing ends there. */
void unwind_forked(void);

#endif
