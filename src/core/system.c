#include "core/system.h"

_Atomic bool system_is_closed;
