/* Memory reads that cannot fault, whatever the address. */
#ifndef MALLOSCOPE_PLATFORM_SAFE_READ_H
#define MALLOSCOPE_PLATFORM_SAFE_READ_H

#include "base/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the 8 bytes at `address` (a multiple of 8) can be read now. About 100 ns. Good for memory that
 * nobody unmaps under us, such as the stack we run on. */
bool safe_read_possible(uint64_t address);

/* Copies memory that another thread may be unmapping. About 300 ns. False if not all of it could be read. */
bool safe_read(void *target, uint64_t address, size_t size);

#endif
