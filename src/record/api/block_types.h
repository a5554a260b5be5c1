/* Types of blocks, which the program names after the block was allocated, and perhaps sampled. */
#ifndef MALLOSCOPE_RECORD_API_BLOCK_TYPES_H
#define MALLOSCOPE_RECORD_API_BLOCK_TYPES_H

#include <stdbool.h>
#include <stdint.h>

/* Gives the live block in slot `slot` of heap `heap` (0: malloc's) the type with the name number `type`. Types are
 * kept per stack: the block moves to the stack record that has the same frames and this type. `*ret_stack` is the
 * number of the block's stack from then on. False: the block is not in the slot. */
bool block_types_set(const void *block, uint32_t slot, uint32_t heap, uint32_t type, uint32_t *ret_stack);

#endif
