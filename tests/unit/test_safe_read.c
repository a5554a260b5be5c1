/* Reads that cannot fault: what can be read is copied whole, what cannot is refused, also where a sandbox
 * does not allow the system call that they are made for. */
#include "check.h"
#include "platform/safe_read.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 65536 /* the largest that there is */ };

static int descriptors(void) {
    int next = dup(0);
    close(next);
    return next;
}

/* Two pages that can be read, and one that cannot. */
static void check_copies(void) {
    uint8_t *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static uint8_t copy[2 * PAGE];
    for (int i = 0; i < 2 * PAGE; i++) pages[i] = (uint8_t)(i * 31 >> 3);
    mprotect(pages + 2 * PAGE, PAGE, PROT_NONE);
    const size_t sizes[] = {1, 8, 63, 4096, 4097, 10000, PAGE, 2 * PAGE};
    int before = descriptors();
    errno = 17;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        const uint8_t *last = pages + 2 * PAGE - size;
        memset(copy, 0xa5, sizeof copy);
        CHECK(safe_read(copy, (uint64_t)last, size) && memcmp(copy, last, size) == 0);
        CHECK(size == sizeof copy || copy[size] == 0xa5);
        CHECK(!safe_read(copy, (uint64_t)last + 1, size)); /* one byte too many */
        CHECK(!safe_read(copy, (uint64_t)pages + 2 * PAGE, size));
        CHECK(!safe_read(copy, 4096, size) && !safe_read(copy, (uint64_t)-4096, size));
    }
    CHECK(safe_read_possible((uint64_t)pages) && safe_read_possible((uint64_t)pages + 2 * PAGE - 8));
    CHECK(!safe_read_possible((uint64_t)pages + 2 * PAGE) && !safe_read_possible(4096));
    CHECK_EQUAL(errno, 17);
    CHECK_EQUAL(descriptors(), before);
    munmap(pages, 3 * PAGE);
}

/* From now on process_vm_readv says EPERM. */
static bool forbid(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool is_forbidden(void) {
    char byte, other = 1;
    struct iovec here = {&byte, 1}, there = {&other, 1};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0;
}

int main(void) {
    if (!is_forbidden()) check_copies();
    CHECK(is_forbidden() || forbid()); /* an emulated kernel may not have it anyway */
    CHECK(is_forbidden());
    check_copies();
    return check_result();
}
