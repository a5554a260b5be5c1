/* The way out of code that has no unwind information and need not keep a frame pointer: what is about to run.
 *
 * Small pieces of generated code (the trampolines of `python3 -X perf`, thunks of foreign-function libraries)
 * return as soon as the call they made returns:
 *
 *     call *%rcx
 *     add $8,%rsp   ◄── pc
 *     ret
 *
 * These instructions say where the caller's frame is. Generated code may be replaced at any time, so they are
 * read anew for each walk and never kept. */
#ifndef MALLOSCOPE_UNWIND_EPILOGUE_H
#define MALLOSCOPE_UNWIND_EPILOGUE_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/rule.h"

struct epilogue {
    uint32_t return_place;      /* bytes from the stack pointer to the return address */
    uint32_t place[BASE_COUNT]; /* to where a register is popped from, plus 1; 0 = it is not */
};

/* Whether the code at `pc` takes its frame down and returns, without a branch in between. `mapping` is where
 * it is in another process; NULL = in this one. */
bool epilogue_read(const struct mapping *mapping, uint64_t pc, struct epilogue *ret_epilogue);

#endif
