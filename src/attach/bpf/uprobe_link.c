#include "attach/bpf/uprobe_link.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

int uprobe_link_create(const struct uprobe_link *link) {
    /* The members of the kernel's union bpf_attr that BPF_LINK_CREATE reads for such a link. */
    struct {
        uint32_t program, target, attach_type, flags;
        uint64_t path, offsets, reference_counters, cookies;
        uint32_t count, probe_flags, pid;
    } attributes = {.program = (uint32_t)link->program, .attach_type = link->attach_type};
    attributes.path = (uint64_t)link->path;
    attributes.offsets = (uint64_t)link->offsets;
    attributes.cookies = (uint64_t)link->cookies;
    attributes.count = link->count;
    attributes.probe_flags = link->on_return;
    attributes.pid = (uint32_t)link->pid;
    long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof attributes);
    return fd < 0 ? -errno : (int)fd;
}
