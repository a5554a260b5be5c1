/* The way out of code that has neither unwind information nor a frame pointer: the instructions that it is about to
 * run.
 *
 * Small pieces of generated code (the trampolines of `python3 -X perf`, thunks of foreign-function libraries)
 * return as soon as the call they made returns:
 *
 *     call *%rcx
 *     add $8,%rsp   ◄── pc
 *     ret
 *
 * These instructions tell where the caller's frame is. Generated code may be replaced at any time, so they are read
 * anew for each stack walk and never kept. x86-64 only. */
#ifndef MALLOSCOPE_UNWIND_EPILOGUE_H
#define MALLOSCOPE_UNWIND_EPILOGUE_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/rule.h"

struct epilogue {
    uint32_t return_place;      /* bytes from sp to the return address */
    uint32_t place[BASE_COUNT]; /* 1 + bytes from sp to where a register is popped from; 0 = it is not */
};

/* Whether the code at `pc` only pops registers, raises the stack pointer and returns. `mapping` is where the code
 * is read from; NULL = in this process. */
bool epilogue_read(const struct mapping *mapping, uint64_t pc, struct epilogue *ret_epilogue);

#endif
