#include "platform/pages.h"

#include "platform/system.h"

#include <sys/mman.h>

void *pages_take(size_t size) {
    if (!system_calls_allowed()) return NULL;
    void *pages =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return NULL;
    return pages;
}

void pages_give(void *pages, size_t size) {
    if (system_calls_allowed()) munmap(pages, size);
}
