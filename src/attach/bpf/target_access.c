#include "attach/bpf/target_access.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORDS _LINUX_CAPABILITY_U32S_3

struct rights {
    struct __user_cap_data_struct word[WORDS];
};

static bool read_rights(struct rights *ret_rights) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    return syscall(SYS_capget, &header, ret_rights->word) == 0;
}

static bool write_rights(const struct rights *rights) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    return syscall(SYS_capset, &header, rights->word) == 0;
}

/* The rights of the caller: the ambient ones. Executing a file with capabilities, or a set-uid one, clears these. So
 * what is there was not given by the file. */
static struct rights caller_rights(const struct rights *own) {
    struct rights rights = *own;
    for (unsigned i = 0; i < 32 * WORDS; i++)
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, i, 0, 0) != 1)
            rights.word[i / 32].effective &= ~(1u << i % 32);
    return rights;
}

static bool has_more(const struct rights *own, const struct rights *caller) {
    for (unsigned i = 0; i < WORDS; i++)
        if (own->word[i].effective & ~caller->word[i].effective) return true;
    return geteuid() != getuid() || getegid() != getgid();
}

/* Opens a file with the rights of the caller. Returns 0 or an errno. */
static int try_as_caller(const char *path, const struct rights *own, const struct rights *caller) {
    setfsgid(getgid());
    setfsuid(getuid());
    int error = EPERM;
    if (write_rights(caller)) {
        int file = open(path, O_RDONLY | O_CLOEXEC);
        error = file < 0 ? errno : 0;
        if (file >= 0) close(file);
    }
    setfsuid(geteuid());
    setfsgid(getegid());
    /* After setfsuid, which may change the rights itself. If they do not come back, later steps fail and say why. */
    write_rights(own);
    return error;
}

int target_access_check(pid_t pid, struct problem *problem) {
    struct rights own, caller;
    if (getuid() == 0) return 0;
    if (!read_rights(&own)) return 0; /* a kernel without capabilities gives none to a file */
    caller = caller_rights(&own);
    if (!has_more(&own, &caller)) return 0; /* the kernel asks the same question at every step */
    char path[64];
    /* To open it takes the right to ptrace the process. */
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    int error = try_as_caller(path, &own, &caller);
    if (error == 0 || error == ENOENT) return 0; /* a process that does not exist is told elsewhere */
    return problem_set(problem, PROBLEM_PERMISSION,
        "attach to a process of your own that you may debug (see kernel.yama.ptrace_scope), or run this as "
        "root",
        "cannot look into process %d: %s", (int)pid, strerror(error));
}
