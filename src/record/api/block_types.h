/* What is learned of a block after it was sampled. */
#ifndef MALLOSCOPE_RECORD_API_BLOCK_TYPES_H
#define MALLOSCOPE_RECORD_API_BLOCK_TYPES_H

#include <stdbool.h>
#include <stdint.h>

/* The block in this slot, of this heap, is of the type with this name: it moves to the stack record of that
 * type, whose number is `*ret_stack`. False if the block is not there. */
bool block_types_set(const void *block, uint32_t slot, uint32_t heap, uint32_t type, uint32_t *ret_stack);

#endif
