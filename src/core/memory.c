#include "core/memory.h"

#include <errno.h>
#include <sys/uio.h>

#include "core/system.h"

/* rt_sigprocmask reads the new mask before it looks at what is to be done with it. With an operation that
 * does not exist it has no effect but to say EFAULT if the mask cannot be read and EINVAL if it can. Unlike
 * process_vm_readv it is allowed in every sandbox. */
bool memory_readable(uint64_t address) {
    return system_call(SYS_rt_sigprocmask, ~0u, address, 0, 8, 0, 0) != -EFAULT;
}

bool memory_copy(void *target, uint64_t address, size_t size) {
    struct iovec local = {.iov_base = target, .iov_len = size};
    struct iovec remote = {.iov_base = (void *)address, .iov_len = size};
    uint64_t process = (uint64_t)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    return system_call(SYS_process_vm_readv, process, (uint64_t)&local, 1, (uint64_t)&remote, 1, 0) ==
           (long)size;
}
