/* Leads exceptions past calls whose return is to be caught. An object of its own, since writing to a
 * program's memory takes more rights, and the kernel makes a note of it in its log: it is loaded only where
 * it is needed. */
#include "threads.bpf.h"

char licence[] SEC("license") = "Dual BSD/GPL";

/* An exception is about to look for its handler, and finds its way by return addresses. If it was thrown
 * inside a call whose return is to be caught (operator new, out of memory), the kernel's trampoline stands in
 * the place of one. It is put right: the call will not return. */
SEC("uprobe")
int exception_raised(struct pt_regs *ctx) {
    __u32 tid = (__u32)bpf_get_current_pid_tgid();
    struct thread *thread = bpf_map_lookup_elem(&threads, &tid);
    if (!thread || thread->call.sp == 0 || !call_is_open(&thread->call, ctx->sp)) return 0;
    struct call call = thread->call;
    thread->call.sp = 0;
    if (bpf_probe_write_user((void *)call.sp, &call.return_address, sizeof call.return_address))
        count(COUNT_LOST_CALLS);
    thread->figures.bytes -= call.size;
    thread->figures.allocations--;
    count(COUNT_FAILED);
    return 0;
}
