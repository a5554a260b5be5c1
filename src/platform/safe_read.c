#include "platform/safe_read.h"

#include "platform/calls.h"

#include <sys/uio.h>

/* rt_sigprocmask reads the new mask before it looks at what is to be done with it. With an operation that
 * does not exist it has no effect but to say EFAULT if the mask cannot be read and EINVAL if it can. Unlike
 * process_vm_readv it is allowed in nearly every sandbox. */
bool safe_read_possible(uint64_t address) {
    return system_call(SYS_rt_sigprocmask, ~0u, address, 0, 8, 0, 0) != -EFAULT;
}

/* Through the kernel and back, where process_vm_readv is not allowed (some sandboxes) or not there (QEMU's
 * user emulation). A pipe takes a page at once. */
static __attribute__((noinline)) bool copy_by_pipe(void *target, uint64_t address, size_t size) {
    int ends[2];
    if (system_call(SYS_pipe2, (uint64_t)ends, O_CLOEXEC | O_NONBLOCK, 0, 0, 0, 0) != 0) return false;
    size_t done = 0;
    for (size_t part; done < size; done += part) {
        part = size - done < PAGE_SIZE_MIN ? size - done : PAGE_SIZE_MIN;
        if (call_write(ends[1], (const void *)(address + done), part) != (long)part) break;
        if (call_read(ends[0], (char *)target + done, part) != (long)part) break;
    }
    call_close(ends[0]);
    call_close(ends[1]);
    return done == size;
}

bool safe_read(void *target, uint64_t address, size_t size) {
    struct iovec local = {.iov_base = target, .iov_len = size};
    struct iovec remote = {.iov_base = (void *)address, .iov_len = size};
    uint64_t process = (uint64_t)call_getpid();
    long copied = system_call(SYS_process_vm_readv, process, (uint64_t)&local, 1, (uint64_t)&remote, 1, 0);
    if (copied == -ENOSYS || copied == -EPERM) return copy_by_pipe(target, address, size);
    return copied == (long)size;
}
