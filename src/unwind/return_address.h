/* What can be a return address, on x86-64 and on aarch64. */
#ifndef MALLOSCOPE_UNWIND_RETURN_ADDRESS_H
#define MALLOSCOPE_UNWIND_RETURN_ADDRESS_H

#include <stdint.h>

/* A program's code lies in [PC_MIN, PC_MAX). */
#define PC_MIN 4096
#if defined(__x86_64__)
#define PC_MAX (UINT64_C(1) << 47)
#else
#define PC_MAX (UINT64_C(1) << 48)
#endif

/* On aarch64 a return address on the stack may carry a signature (pointer authentication) in its upper bits. The
 * instruction xpaclri strips it, and does nothing on processors without pointer authentication. */
static inline uint64_t return_address_without_signature(uint64_t pc) {
#if defined(__aarch64__)
    register uint64_t link __asm__("x30") = pc;
    __asm__("hint #7" : "+r"(link)); /* xpaclri */
    return link;
#else
    return pc;
#endif
}

#endif
