#include "platform/pages.h"

#include "platform/calls.h"

void *pages_take(size_t size) {
    return call_mmap(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void pages_give(void *pages, size_t size) {
    call_munmap(pages, size);
}
