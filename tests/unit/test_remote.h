/* What the walked program and the walker of the remote tests tell each other. */
#ifndef MALLOSCOPE_TESTS_REMOTE_H
#define MALLOSCOPE_TESTS_REMOTE_H

#include <stdint.h>

#include "test_unwind.h"

/* One thread of the program stands still here until a byte comes. */
struct moment {
    char label[32];
    struct unwind_registers registers;
    uint32_t count;       /* 0 = libgcc does not know this stack */
    uint32_t other_stack; /* after how many frames the walk comes to a stack that `registers.sp` is not on; 0
                             = never */
    uint64_t frames[TEST_FRAMES]; /* libgcc's, of which the first is another place in the same function */
};

#endif
