/* Whether a function was called by the executable itself, for functions of the C library that it defines anew. */
#ifndef MALLOSCOPE_BASE_OWN_CODE_H
#define MALLOSCOPE_BASE_OWN_CODE_H

#include <stdbool.h>
#include <stdint.h>

static inline bool own_code_has(const void *address) {
    extern const char __executable_start, etext;
    return (uintptr_t)address - (uintptr_t)&__executable_start <
           (uintptr_t)&etext - (uintptr_t)&__executable_start;
}

#endif
