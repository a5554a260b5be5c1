/* Lets C++ exceptions leave a call whose return is to be caught. This is an object file of its own, loaded only
 * if a plan needs it, because writing to a program's memory takes more rights and the kernel mentions it in its
 * log. */
#include "threads.bpf.h"

char licence[] SEC("license") = "Dual BSD/GPL";

/* Runs when an exception begins to search for its handler. The search follows the return addresses on the stack.
 * If the exception was thrown inside the thread's pending call (an operator new that ran out of memory), one of
 * these addresses has been replaced by that of the kernel's trampoline. The program restores it and forgets the
 * call, which will not return. */
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
