#include "platform/pages.h"

#include "platform/calls.h"

void *pages_take(size_t size) {
    return call_mmap(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void pages_give(void *pages, size_t size) {
    call_munmap(pages, size);
}

/* MADV_POPULATE_WRITE makes the page faults that stores would make, and reports what a store would get as SIGBUS. The
 * headers of older systems do not have it. */
#define POPULATE_WRITE 23

bool pages_can_back(void) {
    /* For no pages at all, the kernel only looks at whether it knows the advice. */
    return system_call(SYS_madvise, 0, 0, POPULATE_WRITE, 0, 0, 0) == 0;
}

int pages_back(void *start, size_t size) {
    return (int)system_call_again(SYS_madvise, (uintptr_t)start, size, POPULATE_WRITE, 0, 0, 0);
}
