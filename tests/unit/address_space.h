/* Tests of what happens when there is no more address space. QEMU's user emulation takes a limit (RLIMIT_AS)
 * and does not keep it: there is nothing to be tested there. */
#ifndef MALLOSCOPE_TESTS_ADDRESS_SPACE_H
#define MALLOSCOPE_TESTS_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>

/* Whether `size` bytes more are refused, as they are to be. Says so if they are not. */
static inline bool address_space_is_used_up(size_t size) {
    void *more = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (more == MAP_FAILED) return true;
    munmap(more, size);
    fprintf(stderr, "not tested: the limit of the address space is not kept here\n");
    return false;
}

#endif
