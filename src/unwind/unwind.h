/* The unwinder inside the profiled program. README.md lists the files behind it.
 *
 * `unwind_capture` walks the calling thread's stack from the given registers (those of the caller of malloc at the
 * moment of the call) and stores return addresses, leaf first. It takes no lock, allocates nothing, reads only the
 * thread's stack and known mappings, and ends cleanly at anything it does not understand. It may be entered again
 * from a signal handler, and leaves errno alone. */
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

/* A stack: every read of a walk lies in [low, high). [low, proven) is known to be readable. From `proven` on each
 * page is tried, at the price of a system call, before it is read. */
struct unwind_bounds {
    uint64_t low, high, proven;
};

/* How far a stack is followed of which only the stack pointer is known: an alternate signal stack, or a coroutine's. */
#define UNWIND_FOREIGN_STACK (UINT64_C(256) << 20)

/* The bounds of the stack that `sp` points into. `cached_low` and `cached_high` are two words of the calling
 * thread, zero at first, in which the function keeps what it found. */
struct unwind_bounds unwind_stack_bounds(uint64_t sp, uint64_t *cached_low, uint64_t *cached_high);

/* Stores at most `max` frame words (core/recording.h) into `frames`, leaf first, and returns how many. `frames[0]`
 * is `registers->pc`.
 *
 * A word is a return address; in a module with a number (unwind_note) it is that number and the offset in the
 * module's file. A reader looks up the byte before it. Where a pc is not the return address of a call, but was
 * interrupted by a signal or begins a function (rule_begins_function), the word is that of pc + 1.
 *
 * Of a stack that is deeper than `max`, the half nearest to the leaf and the half nearest to the root are kept, and
 * `frames[max / 2]` is the word FRAME_CUT << FRAME_KIND_SHIFT. `*ret_complete` says whether the walk reached the
 * start of the thread. */
uint32_t unwind_capture(const struct unwind_registers *registers, struct unwind_bounds bounds,
    uint64_t *frames, uint32_t max, bool *ret_complete);

/* What a stack walk depended on. A later walk that starts from equal registers, and would find equal words at these
 * places of the stack, would store the same frames, and need not be made (record/walkcache). */
#define TRACE_WORDS 128

struct unwind_trace {
    bool whole; /* the walk depended on nothing else; false if it came through a signal frame, for instance */
    bool uses_fp; /* the walk depended on the frame pointer that it started from */
    uint32_t count;
    uint32_t place[TRACE_WORDS]; /* distance from registers->sp, in words of 8 bytes */
    uint64_t word[TRACE_WORDS];
};

/* unwind_capture that also fills `places`, with the stack pointer of each frame at its call (UINT64_MAX beside
 * FRAME_CUT), and `ret_trace`; either may be NULL. `*ret_in_handler` says whether the walk came through a signal
 * frame: then the thread is in a signal handler, and what it did before may be half done. */
uint32_t unwind_capture_traced(const struct unwind_registers *registers, struct unwind_bounds bounds,
    uint64_t *frames, uint64_t *places, uint32_t max, bool *ret_complete, bool *ret_in_handler,
    struct unwind_trace *ret_trace);

/* The word for a frame that returns to `address`. */
uint64_t unwind_frame_word(uint64_t address);

/* Told of every executable mapping that the unwinder comes to know, before a frame in it is stored. Returns the number
 * of the module by which frames are to name it, or MODULE_BY_ADDRESS or MODULE_NOT_NOTED (core/module_table.h). May be
 * asked about the same mapping several times, and by several threads at once. */
struct mapped_code; /* platform/maps.h */
typedef uint32_t unwind_note(const struct mapped_code *code);

/* To be called once. `note` may be NULL. `early` says that this is the first call of malloc in the process. dlopen
 * allocates before it maps anything, so all files that are mapped at that moment belong to the program from its
 * start and are never unmapped: they are read directly, and their frames are plain addresses. Without this call all
 * works, but frames in code that is new to the unwinder cost some microseconds more. */
void unwind_start(unwind_note *note, bool early);

/* To be called before and after every dlclose, so that a library is noticed that takes the place of another.
 * `begun` is what unwind_closing_begin returned; `unloaded` says whether dlclose unmapped something. While a
 * library is being closed, captures check their mappings first, which takes some microseconds. */
uint64_t unwind_closing_begin(void);
void unwind_closing_end(uint64_t begun, bool unloaded);

/* The epoch of the list of mappings. While it stays the same, captures that find the same words on the stack store
 * the same frames. 0 = that is not certain at present. */
uint64_t unwind_epoch(void);

/* To be called in the child after a fork: there, the parent's other threads do not go on. */
void unwind_forked(void);

#endif
