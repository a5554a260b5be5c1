/* The signal frame: where the kernel saves the registers of the interrupted code before it runs a signal handler.
 *
 * A handler returns to the signal trampoline. All offsets count from the stack pointer that the trampoline runs
 * with. */
#ifndef MALLOSCOPE_UNWIND_SIGNAL_FRAME_H
#define MALLOSCOPE_UNWIND_SIGNAL_FRAME_H

#if defined(__x86_64__)
enum {
    SIGNAL_R12 = 72, /* r13, r14 and r15 follow */
    SIGNAL_FP = 120,
    SIGNAL_RBX = 128,
    SIGNAL_SP = 160,
    SIGNAL_PC = 168,
};
#else
enum {
    SIGNAL_FP = 544,
    SIGNAL_LINK = 552, /* x30, which holds the return address in a function that calls nothing */
    SIGNAL_SP = 560,
    SIGNAL_PC = 568,
};
#endif

#endif
