#include "platform/pages.h"

#include "platform/calls.h"

/* ThreadSanitizer does not see these system calls. Where its run-time is in the program, it is told that pages which
 * one thread takes may be those that another gave back before; else it would report the two uses as a race. */
extern void __tsan_acquire(void *) __attribute__((weak));
extern void __tsan_release(void *) __attribute__((weak));
static char given_back;

void *pages_take(size_t size) {
    void *pages = call_mmap(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (__tsan_acquire) __tsan_acquire(&given_back);
    return pages;
}

void pages_give(void *pages, size_t size) {
    if (__tsan_release) __tsan_release(&given_back);
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
