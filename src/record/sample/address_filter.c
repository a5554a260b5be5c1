#include "record/sample/address_filter.h"

_Atomic uint8_t address_filter_counts[1 << 16];
