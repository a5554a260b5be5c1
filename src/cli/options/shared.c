#include "cli/options/shared.h"

#include <stddef.h>

const char *const shared_by_names[] = {"site", "function", "line", "file", "module", "thread", "heap", "type",
    "scope", "stack", "process", NULL};
const char *const shared_sort_names[] = {"live", "peak", "total", "allocs", "temp", NULL};
