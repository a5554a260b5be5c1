#include "attach/bpf/kernel_support.h"

#include "attach/bpf/uprobe_link.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF     39
#endif

const char *kernel_support_method_name(enum probe_method method) {
    switch (method) {
    case METHOD_BEST:
        break;
    case METHOD_SESSION:
        return "session links";
    case METHOD_MULTI:
        return "multi links";
    case METHOD_PERF:
        return "perf events";
    }
    return "none";
}

/* ---- trying ---- */

/* Loads a program that does nothing. Returns its descriptor or a negative errno. */
static int load_nothing(unsigned attach_type) {
    /* return 0 */
    struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K}, {.code = BPF_JMP | BPF_EXIT}};
    LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = attach_type);
    return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "nothing", "GPL", code, 2, &options);
}

/* Puts a program that does nothing on the first byte of a file and removes it again. Returns 0 or a negative errno:
 * -ENOEXEC if the program cannot even be loaded. */
static int try_link(unsigned attach_type, int pid, const char *path) {
    unsigned long offset = 0, cookie = 1;
    struct uprobe_link link = {.program = load_nothing(attach_type),
        .attach_type = attach_type,
        .pid = pid,
        .path = path,
        .offsets = &offset,
        .cookies = &cookie,
        .count = 1};
    if (link.program < 0) return -ENOEXEC;
    int fd = uprobe_link_create(&link);
    if (fd >= 0) close(fd);
    close(link.program);
    return fd < 0 ? fd : 0;
}

/* The first byte of the tool's own file is in the ELF header, which is never executed. */
static bool link_works(unsigned attach_type) {
    return try_link(attach_type, getpid(), "/proc/self/exe") == 0;
}

/* Whether a multi link sees all threads of the process that it is made for. The first kernels with multi links
 * compared the number of the *thread* with the wanted pid, so they missed all threads but the first. Corrected
 * kernels refuse a negative pid with -EINVAL before they look at the path; the first ones find that "/" is no
 * file. */
static bool filters_by_process(void) {
    return try_link(ATTACH_UPROBE_MULTI, -1, "/") == -EINVAL;
}

static bool has_perf_uprobes(void) {
    return access("/sys/bus/event_source/devices/uprobe/type", R_OK) == 0;
}

/* ---- explaining ---- */

static uint64_t effective_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    if (syscall(SYS_capget, &header, data) != 0) return 0;
    return data[0].effective | (uint64_t)data[1].effective << 32;
}

static bool is_locked_down(void) {
    char text[128] = "";
    FILE *file = fopen("/sys/kernel/security/lockdown", "re");
    if (!file) return false;
    bool is = fgets(text, sizeof text, file) && strstr(text, "[confidentiality]");
    fclose(file);
    return is;
}

static const char *kernel_release(void) {
    static struct utsname name;
    return uname(&name) == 0 ? name.release : "?";
}

/* The path of the executable that needs capabilities: malloscope-commands, not the `malloscope` that the user
 * called. */
static const char *own_path(void) {
    static char path[256];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    return length > 0 ? path : "malloscope-commands";
}

static const char instead[] = ", or poll the heap's size only: malloscope attach --via smaps";

static int explain(enum probe_trouble trouble, enum probe_trouble *ret_trouble, struct problem *problem) {
    char remedy[sizeof problem->remedy];
    *ret_trouble = trouble;
    switch (trouble) {
    case PROBE_NO_PERMISSION:
        snprintf(remedy, sizeof remedy,
            "run it as root; or let the members of a group attach to their own processes, on Linux 6.6 or "
            "later: "
            "f=%s; chgrp GROUP $f && chmod 750 $f && setcap cap_bpf,cap_perfmon+ep $f; in a container, start "
            "that "
            "with --privileged%s",
            own_path(), instead);
        return problem_set(
            problem, PROBLEM_PERMISSION, remedy, "no permission to load programs into the kernel (eBPF)");
    case PROBE_NOT_ROOT:
        snprintf(remedy, sizeof remedy, "run it as root, or use Linux 6.6 or later%s", instead);
        return problem_set(problem, PROBLEM_PERMISSION, remedy,
            "on kernel %s probes take all rights (CAP_SYS_ADMIN)", kernel_release());
    case PROBE_LOCKDOWN:
        snprintf(remedy, sizeof remedy, "boot with lockdown=integrity or without Secure Boot%s", instead);
        return problem_set(problem, PROBLEM_PERMISSION, remedy,
            "the kernel is locked down (/sys/kernel/security/lockdown says confidentiality): "
            "eBPF may not read memory");
    case PROBE_NO_BPF:
        snprintf(
            remedy, sizeof remedy, "use a kernel with CONFIG_BPF_SYSCALL, or leave the sandbox%s", instead);
        return problem_set(problem, PROBLEM_FAILURE, remedy,
            "kernel %s has no eBPF, or a sandbox hides the bpf system call", kernel_release());
    case PROBE_NO_BTF:
        snprintf(
            remedy, sizeof remedy, "use a kernel with CONFIG_DEBUG_INFO_BTF, as Debian's are%s", instead);
        return problem_set(problem, PROBLEM_FAILURE, remedy,
            "kernel %s does not describe its types (there is no /sys/kernel/btf/vmlinux)", kernel_release());
    case PROBE_KERNEL_TOO_OLD:
        snprintf(remedy, sizeof remedy, "use Linux 5.15 or later%s", instead);
        return problem_set(
            problem, PROBLEM_FAILURE, remedy, "kernel %s is too old for attaching by eBPF", kernel_release());
    case PROBE_NO_UPROBES:
        snprintf(remedy, sizeof remedy, "use a kernel with CONFIG_UPROBE_EVENTS%s", instead);
        return problem_set(problem, PROBLEM_FAILURE, remedy, "kernel %s has no uprobes", kernel_release());
    case PROBE_FINE:
    case PROBE_NO_MEMORY:
    case PROBE_OTHER:
        break;
    }
    return -PROBLEM_FAILURE;
}

int kernel_support_find(
    enum probe_method *ret_method, enum probe_trouble *ret_trouble, struct problem *problem) {
    uint64_t rights = effective_capabilities();
    bool all = rights >> CAP_SYS_ADMIN & 1;
    int program = load_nothing(0);
    int error = program < 0 ? -program : 0;
    if (program >= 0) close(program);
    if (error == ENOSYS) return explain(PROBE_NO_BPF, ret_trouble, problem);
    if (error == EPERM && is_locked_down()) return explain(PROBE_LOCKDOWN, ret_trouble, problem);
    if (error == EPERM || error == EACCES || !(all || (rights >> CAP_BPF & rights >> CAP_PERFMON & 1)))
        return explain(PROBE_NO_PERMISSION, ret_trouble, problem);
    if (is_locked_down()) return explain(PROBE_LOCKDOWN, ret_trouble, problem);
    if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie, NULL) == 0)
        return explain(PROBE_KERNEL_TOO_OLD, ret_trouble, problem);
    struct btf *types = btf__load_vmlinux_btf();
    if (libbpf_get_error(types)) return explain(PROBE_NO_BTF, ret_trouble, problem);
    btf__free(types);

    if (link_works(ATTACH_UPROBE_SESSION) && link_works(ATTACH_UPROBE_MULTI))
        *ret_method = METHOD_SESSION;
    else if (link_works(ATTACH_UPROBE_MULTI) && filters_by_process())
        *ret_method = METHOD_MULTI;
    else if (!has_perf_uprobes())
        return explain(PROBE_NO_UPROBES, ret_trouble, problem);
    else if (!all)
        return explain(PROBE_NOT_ROOT, ret_trouble, problem);
    else
        *ret_method = METHOD_PERF;
    *ret_trouble = PROBE_FINE;
    return 0;
}
