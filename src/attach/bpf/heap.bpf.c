/* The kernel side of attach: BPF programs that decide which allocations are sampled, follow sampled blocks to
 * their free, and send events to the tool. event.h describes the events, cookie.h what each probe knows about its
 * function.
 *
 *     target          malloc(size) ────────────────► returns p ─ ─ ─ ─ ─ free(p)
 *                         │                              │                 │
 *     programs        on_call                        on_return         heap_free
 *                     takes size off the             enters p in       is p in `live`? then it
 *                     countdown. Sampled? ─ call ──► `live`, sends     is removed and an event
 *                     If not, the return             an event with     is sent; if not,
 *                     is not caught.                 stack and         nothing is sent
 *                                                    registers
 *
 * From a call until its return the thread has a pending call (struct call). Whatever allocation functions the
 * thread calls meanwhile are the allocator's own: realloc may call malloc, which must not be counted twice.
 * Therefore a pending call whose return is never caught, for instance because of a longjmp, must be recognised
 * (call_is_open).
 *
 * realloc: the old block is removed from `live` before the allocator runs, because another thread may be given
 * its address before realloc has returned. If realloc fails, the old block is entered again (restore).
 *
 * The kernel may interrupt a program here and run another task on the processor. So no state is kept per
 * processor except the counters, and additions to these are atomic. */
#include "cookie.h"
#include "sampling_interval.h"
#include "stack.bpf.h"
#include "threads.bpf.h"

/* The kernel offers the helpers that read memory only to programs under a licence compatible with the GPL. */
char licence[] SEC("license") = "Dual BSD/GPL";

/* Set by the tool before loading. */
const volatile __u64 rate = 1;             /* sampling interval: mean bytes between samples; 1 = all */
const volatile __u64 stack_limit = 16384;  /* at most so many bytes of a stack are copied */
const volatile __u64 stack_by_frames = 0;  /* follow frame pointers instead of copying */
const volatile __u64 wake_bytes = 1 << 17; /* wake the tool when the ring buffer holds so many bytes */
const volatile __u64 follows_children = 0; /* send events of children also before they are attached to */

/* A task has one number in each pid namespace that it is in. This is the depth of the tool's namespace, which
 * says which of the numbers the tool knows. The tool sets it by running find_level. */
__u64 pid_level = 0;

/* Set by the tool. A call of a function that may throw is ignored if its size is above this one: the allocation may
 * well fail with an exception, which must not find the trampoline's address on the stack. */
__u64 throw_limit = 0;

/* The number of threads entered so far, from which each thread's range of block numbers follows. */
__u64 threads_made = 0;

/* Set by the tool when it begins to remove the probes. The returns of pending calls may not be caught any more:
 * that is no loss then. */
__u64 is_detaching = 0;

/* Set by the tool with its first entry in `stack_ends`. */
__u64 has_stack_ends = 0;

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 20);
} ring SEC(".maps");

/* The tracked blocks: from the address to the block's number. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1 << 20);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct live_key);
    __type(value, __u64);
} live SEC(".maps");

/* Frees that found the ring buffer full. The tool makes it as large as `live`, so that every tracked block has
 * room. */
struct {
    __uint(type, BPF_MAP_TYPE_QUEUE);
    __uint(max_entries, 1 << 20);
    __type(value, struct late_free);
} late_frees SEC(".maps");

/* Where a thread's outermost frame ends, as the tool has found out. The key is the thread's number in the tool's
 * pid namespace. Between that address and the thread's control block lie thread-local variables, which need not
 * be copied. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, THREADS_MAX);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u32);
    __type(value, __u64);
} stack_ends SEC(".maps");

/* The processes that are profiled: from the number in the tool's pid namespace to the process's exec_count. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u32);
    __type(value, __u32);
} processes SEC(".maps");

/* The child processes that a fork event was sent for and that the tool has not attached to yet. Keys and
 * values as above. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u32);
    __type(value, __u32);
} expected SEC(".maps");

/* ---- sending events ---- */

static __always_inline __u64 wake_flags(void) {
    return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= wake_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static __always_inline void head_of(struct event *event, __u32 kind, const struct thread *thread) {
    event->kind = kind;
    event->pid = thread->pid;
    event->tid = thread->tid;
    event->exec_count = thread->exec_count;
    event->time = bpf_ktime_get_ns();
}

static __noinline void tell_free(const struct thread *thread, __u64 block) {
    struct event_free told = {.block = block};
    head_of(&told.event, EVENT_FREE, thread);
    if (bpf_ringbuf_output(&ring, &told, sizeof told, wake_flags()) == 0) return;
    struct late_free late = {.block = block, .time = told.event.time};
    if (bpf_map_push_elem(&late_frees, &late, BPF_ANY) == 0)
        count(COUNT_LATE_FREES);
    else
        count(COUNT_FORGOTTEN_FREES);
}

static __always_inline void tell_thread(__u32 kind, const struct thread *thread) {
    struct event_thread *told = bpf_ringbuf_reserve(&ring, sizeof *told, 0);
    if (!told) {
        count(COUNT_LOST_NOTICES);
        return;
    }
    head_of(&told->event, kind, thread);
    told->figures = thread->figures;
    bpf_get_current_comm(told->name, sizeof told->name);
    bpf_ringbuf_submit(told, wake_flags());
}

/* Sends an event on which the tool should act at once: it is woken. */
static __always_inline void tell_notice(void *event, __u64 size) {
    if (bpf_ringbuf_output(&ring, event, size, BPF_RB_FORCE_WAKEUP)) count(COUNT_LOST_NOTICES);
}

/* ---- the calling thread ---- */

/* The number of a task in the tool's pid namespace; 0 if the task is not in that namespace. */
static __always_inline __u32 number_of(struct task_struct *task) {
    struct pid *pid = BPF_CORE_READ(task, thread_pid);
    __u64 at = bpf_core_field_offset(struct pid, numbers) + pid_level * bpf_core_type_size(struct upid) +
               bpf_core_field_offset(struct upid, nr);
    __u32 number = 0;
    if (pid_level <= BPF_CORE_READ(pid, level))
        bpf_probe_read_kernel(&number, sizeof number, (char *)pid + at);
    return number;
}

static __always_inline __u64 draw_interval(void) {
    return sampling_interval_draw((__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32(), rate);
}

/* Enters the current thread in the table of threads. NULL if its process is not profiled, or the table is full. */
static __noinline struct thread *make_thread(__u32 kernel_tid) {
    struct task_struct *task = (void *)bpf_get_current_task();
    struct thread thread = {.pid = number_of(BPF_CORE_READ(task, group_leader)), .tid = number_of(task)};
    __u32 *exec_count = bpf_map_lookup_elem(&processes, &thread.pid);
    if (!exec_count) {
        count(COUNT_FOREIGN);
        return NULL;
    }
    thread.exec_count = *exec_count;
    thread.countdown = draw_interval();
    thread.next_block = (__sync_fetch_and_add(&threads_made, 1) << 40) + 1;
    /* The C library puts a thread's control block, which the register fs points to, at the upper end of the
     * thread's stack. The first thread's stack ends where the kernel has put the arguments of the program. */
    if (BPF_CORE_READ(task, pid) == BPF_CORE_READ(task, tgid))
        thread.stack_end = BPF_CORE_READ(task, mm, start_stack);
    else
        thread.stack_end = BPF_CORE_READ(task, thread.fsbase);
    if (bpf_map_update_elem(&threads, &kernel_tid, &thread, BPF_NOEXIST)) {
        count(COUNT_LOST_THREADS);
        return NULL;
    }
    tell_thread(EVENT_THREAD, &thread);
    return bpf_map_lookup_elem(&threads, &kernel_tid);
}

static __always_inline struct thread *current_thread(void) {
    __u32 tid = (__u32)bpf_get_current_pid_tgid();
    struct thread *thread = bpf_map_lookup_elem(&threads, &tid);
    return thread ? thread : make_thread(tid);
}

/* ---- tracked blocks ---- */

static __always_inline struct live_key key_of(const struct thread *thread, __u64 address) {
    return (struct live_key){.address = address, .pid = thread->pid, .exec_count = thread->exec_count};
}

/* Removes a block from `live`. Returns its number, or 0 if it is not tracked. */
static __always_inline __u64 withdraw(const struct thread *thread, __u64 address) {
    struct live_key key = key_of(thread, address);
    __u64 *found = bpf_map_lookup_elem(&live, &key);
    if (!found) return 0;
    __u64 block = *found;
    bpf_map_delete_elem(&live, &key);
    return block;
}

/* Enters the old block of a failed realloc in `live` again. If the table has no room for it any more, the block
 * is reported as freed: it is better that a live block ends too early than that it looks live for ever. */
static __noinline void restore(const struct thread *thread, const struct call *call) {
    struct live_key key = key_of(thread, call->old_address);
    __u64 block = call->old_block;
    if (block == 0 || bpf_map_update_elem(&live, &key, &block, BPF_ANY) == 0) return;
    count(COUNT_LOST_LIVE);
    tell_free(thread, block);
}

/* ---- pending calls ---- */

/* Whether the current call happens inside the thread's pending call. A pending call that is not running any more is
 * forgotten. */
static __noinline bool is_nested(struct thread *thread, __u64 sp) {
    if (thread->call.sp == 0) return false;
    if (call_is_open(&thread->call, sp)) {
        count(COUNT_NESTED);
        return true;
    }
    if (!is_detaching) count(COUNT_LOST_CALLS);
    restore(thread, &thread->call);
    thread->call.sp = 0;
    return false;
}

/* ---- allocations ---- */

static __always_inline void registers_of(const struct pt_regs *ctx, struct event_registers *registers) {
    registers->ip = ctx->ip;
    registers->sp = ctx->sp;
    registers->bp = ctx->bp;
    registers->bx = ctx->bx;
    registers->r12 = ctx->r12;
    registers->r13 = ctx->r13;
    registers->r14 = ctx->r14;
    registers->r15 = ctx->r15;
}

/* Enters the block in `live` and sends its event, with `room` bytes for the stack. `room` must be a constant: the
 * kernel reserves space in the ring buffer in constant sizes only. False if the block could not be entered or
 * sent; it is not tracked then. */
static __always_inline bool tell_with_room(const struct pt_regs *ctx, struct thread *thread,
    const struct call *call, __u64 address, __u64 wanted, const __u64 room) {
    const __u64 slack = room >= 4 * PIECE ? PIECE : 0;
    struct event_allocation *told = bpf_ringbuf_reserve(&ring, sizeof *told + room + slack, 0);
    if (!told) {
        count(COUNT_LOST_RING);
        count_by(COUNT_LOST_RING_BYTES, call->size);
        return false;
    }
    struct live_key key = key_of(thread, address);
    __u64 block = thread->next_block;
    __u64 *previous = bpf_map_lookup_elem(&live, &key);
    told->replaced = previous ? *previous : 0;
    if (bpf_map_update_elem(&live, &key, &block, BPF_ANY)) {
        bpf_ringbuf_discard(told, 0);
        count(COUNT_LOST_LIVE);
        count_by(COUNT_LOST_LIVE_BYTES, call->size);
        return false;
    }
    if (previous) count(COUNT_REPLACED);
    thread->next_block++;
    head_of(&told->event, EVENT_ALLOCATION, thread);
    told->block = block;
    told->address = address;
    told->size = call->size;
    told->ended = call->old_block;
    registers_of(ctx, &told->registers);
    told->stack_flags = 0;
    if (stack_by_frames) {
        walk_frames(told);
    } else {
        told->stack_kind = EVENT_STACK_COPY;
        if (wanted > stack_limit) {
            wanted = stack_limit;
            told->stack_flags = EVENT_STACK_CUT;
            count(COUNT_STACKS_CUT);
        }
        copy_stack(told, wanted, room, ctx->sp < thread->stack_end);
    }
    bpf_ringbuf_submit(told, wake_flags());
    count(COUNT_SAMPLED);
    return true;
}

/* The address up to which the thread's stack is copied. */
static __always_inline __u64 stack_end_of(const struct thread *thread, __u64 sp) {
    if (has_stack_ends) {
        __u64 *end = bpf_map_lookup_elem(&stack_ends, &thread->tid);
        if (end && sp < *end && *end < thread->stack_end) return *end;
    }
    return thread->stack_end;
}

static __noinline bool tell_allocation(
    const struct pt_regs *ctx, struct thread *thread, const struct call *call, __u64 address) {
    if (stack_by_frames) return tell_with_room(ctx, thread, call, address, 0, FRAMES_MAX * 8);
    /* The end of a stack that is not the thread's own (of a coroutine or a signal handler) is not known. */
    __u64 end = stack_end_of(thread, ctx->sp), wanted = ctx->sp < end ? end - ctx->sp : stack_limit;
    __u64 copied = wanted < stack_limit ? wanted : stack_limit;
    if (copied <= 512) return tell_with_room(ctx, thread, call, address, wanted, 512);
    if (copied <= 1024) return tell_with_room(ctx, thread, call, address, wanted, 1024);
    if (copied <= 2048) return tell_with_room(ctx, thread, call, address, wanted, 2048);
    if (copied <= 4096) return tell_with_room(ctx, thread, call, address, wanted, 4096);
    if (copied <= 8192) return tell_with_room(ctx, thread, call, address, wanted, 8192);
    if (copied <= 16384) return tell_with_room(ctx, thread, call, address, wanted, 16384);
    if (copied <= 32768) return tell_with_room(ctx, thread, call, address, wanted, 32768);
    return tell_with_room(ctx, thread, call, address, wanted, 65536);
}

/* The first argument, in rdi. In assembly, because the compiler would compute the address in a register that it
 * shares with other reads, and the verifier allows reads of the context only at constant offsets. */
static __always_inline __u64 first_argument(const struct pt_regs *ctx) {
    __u64 value;
    asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(value) : "r"(ctx), "i"(offsetof(struct pt_regs, di)));
    return value;
}

/* The value of the register that a field of the cookie names; 0 if it names none. The offset is not constant, so
 * a helper has to read the context. The first argument, which most probes want, is read without the call of the
 * helper. */
static __always_inline __u64 register_of(const struct pt_regs *ctx, __u64 cookie, int field) {
    __u64 slot = cookie_register(cookie, field), value = 0;
    if (slot == COOKIE_NONE) return 0;
    if (slot == offsetof(struct pt_regs, di) / sizeof ctx->di) return first_argument(ctx);
    bpf_probe_read_kernel(&value, sizeof value, (const __u64 *)ctx + slot);
    return value;
}

/* Takes the size off the thread's countdown. True if the countdown ends with this allocation: it is sampled, and
 * a new countdown begins. */
static __always_inline bool is_sampled(struct thread *thread, __u64 size) {
    if (rate <= 1) return true;
    if (size < thread->countdown) {
        thread->countdown -= size;
        return false;
    }
    thread->countdown = draw_interval();
    return true;
}

/* Whether the probe was made for a program that the process does not run any more. */
static __always_inline bool is_stale(__u64 cookie, const struct thread *thread) {
    return ((cookie >> COOKIE_EXECS) & COOKIE_EXECS_MAX) != (thread->exec_count & COOKIE_EXECS_MAX);
}

/* Counts that a block has ended. `block` is its number, 0: it is not tracked. */
static __always_inline void count_end(struct thread *thread, __u64 block) {
    thread->figures.frees++;
    if (!block) thread->figures.frees_unknown++;
}

/* The call of an allocation function. True if its return is to be caught; it is the thread's pending call then. */
static __always_inline bool on_call(const struct pt_regs *ctx, struct thread *thread) {
    __u64 cookie = bpf_get_attach_cookie((void *)ctx);
    count(COUNT_ENTRIES);
    if (!thread || is_stale(cookie, thread) || is_nested(thread, ctx->sp)) return false;
    thread->freed = 0;

    struct call call = {.sp = ctx->sp, .size = register_of(ctx, cookie, COOKIE_SIZE)};
    if (cookie_register(cookie, COOKIE_COUNT) != COOKIE_NONE) {
        __u64 factor = register_of(ctx, cookie, COOKIE_COUNT), largest = ~0ULL;
        opaque(largest);
        if (factor && call.size > largest / factor) return false;
        call.size *= factor;
    }
    if ((cookie & COOKIE_THROWS) && call.size > throw_limit) return false;
    call.sampled = is_sampled(thread, call.size);
    thread->figures.bytes += call.size;
    thread->figures.allocations++;
    call.old_address = register_of(ctx, cookie, COOKIE_OLD);
    if (call.old_address) {
        call.old_block = withdraw(thread, call.old_address);
        count_end(thread, call.old_block);
    }
    if (!call.sampled && !call.old_block && !(cookie & COOKIE_NESTS)) return false;

    call.out = register_of(ctx, cookie, COOKIE_OUT);
    if (bpf_probe_read_user(&call.return_address, sizeof call.return_address, (void *)ctx->sp)) {
        count(COUNT_LOST_CALLS);
        restore(thread, &call);
        return false;
    }
    thread->call = call;
    return true;
}

/* The pointer that the call has returned or stored, or 0 if it failed. */
static __always_inline __u64 result_of(const struct pt_regs *ctx, const struct call *call) {
    if (!call->out) return ctx->ax;
    __u64 address = 0;
    if ((__u32)ctx->ax != 0 || bpf_probe_read_user(&address, sizeof address, (void *)call->out)) return 0;
    return address;
}

static __always_inline bool is_return_of(const struct pt_regs *ctx, const struct call *call) {
    return call->sp != 0 && ctx->ip == call->return_address && ctx->sp == call->sp + 8;
}

static __always_inline void call_failed(struct thread *thread, const struct call *call) {
    thread->figures.bytes -= call->size;
    thread->figures.allocations--;
    if (call->old_address) {
        thread->figures.frees--;
        if (!call->old_block) thread->figures.frees_unknown--;
    }
    count(COUNT_FAILED);
    restore(thread, call);
}

static __noinline void on_return(const struct pt_regs *ctx, struct thread *thread) {
    struct call call = thread->call;
    thread->call.sp = 0;
    count(COUNT_RETURNS);
    __u64 address = result_of(ctx, &call);
    if (address) {
        if (call.sampled && tell_allocation(ctx, thread, &call, address)) return;
        if (call.old_block) tell_free(thread, call.old_block);
        return;
    }
    if (call.old_address && call.size == 0) { /* realloc(p, 0) that returned NULL has freed p */
        thread->figures.allocations--;
        count(COUNT_FREES);
        if (call.old_block)
            tell_free(thread, call.old_block);
        else
            count(COUNT_FREES_UNKNOWN);
        return;
    }
    call_failed(thread, &call);
}

/* ---- the probes ---- */

/* For METHOD_SESSION: one program for calls and returns. Its result at the call decides whether the return is
 * caught: 0 means yes. */
SEC("uprobe")
int heap_session(struct pt_regs *ctx) {
    struct thread *thread = current_thread();
    if (thread && is_return_of(ctx, &thread->call)) {
        on_return(ctx, thread);
        return 0;
    }
    return on_call(ctx, thread) ? 0 : 1;
}

/* For METHOD_MULTI and METHOD_PERF: two programs; every return is caught. */
SEC("uprobe")
int heap_call(struct pt_regs *ctx) {
    on_call(ctx, current_thread());
    return 0;
}

SEC("uretprobe")
int heap_return(struct pt_regs *ctx) {
    __u32 tid = (__u32)bpf_get_current_pid_tgid();
    struct thread *thread = bpf_map_lookup_elem(&threads, &tid);
    if (thread && is_return_of(ctx, &thread->call))
        on_return(ctx, thread);
    else
        count(COUNT_RETURNS);
    return 0;
}

/* Whether this free is the allocator's own: it is called from the allocator's code. At the end of a thread, glibc
 * frees once more what the thread had freed into its cache. This matters only where all allocations are tracked,
 * since only there frees of unknown blocks are reported to the user. */
static __always_inline bool is_allocators_own(const struct pt_regs *ctx, __u64 cookie) {
    __u64 caller, ip = ctx->ip;
    if (rate > 1) return false;
    if (bpf_probe_read_user(&caller, sizeof caller, (void *)ctx->sp)) return false;
    return caller >= ip - cookie_reach(cookie, COOKIE_BEFORE) &&
           caller < ip + cookie_reach(cookie, COOKIE_BEHIND);
}

/* Whether a free of a block that is not tracked is a part of the free before it: tcmalloc's sized operator delete
 * jumps on to its free. Returns of frees are not caught, since that would double what they cost. So it is known by
 * this: the thread frees the same block again from the same place on its stack or deeper, and has allocated nothing
 * in between. */
static __always_inline bool is_same_free(const struct thread *thread, __u64 address, __u64 sp) {
    return thread->freed == address && sp <= thread->freed_sp;
}

SEC("uprobe")
int heap_free(struct pt_regs *ctx) {
    __u64 cookie = bpf_get_attach_cookie(ctx);
    __u64 address = register_of(ctx, cookie, COOKIE_OLD);
    count(COUNT_ENTRIES);
    if (!address) return 0;
    struct thread *thread = current_thread();
    if (!thread || is_stale(cookie, thread) || is_nested(thread, ctx->sp)) return 0;
    __u64 block = withdraw(thread, address);
    if (!block && is_same_free(thread, address, ctx->sp)) {
        count(COUNT_NESTED);
        return 0;
    }
    thread->freed = cookie & COOKIE_NESTS ? address : 0;
    thread->freed_sp = ctx->sp;
    if (!block && is_allocators_own(ctx, cookie)) return 0;
    count_end(thread, block);
    count(COUNT_FREES);
    if (block)
        tell_free(thread, block);
    else
        count(COUNT_FREES_UNKNOWN);
    return 0;
}

/* On _dl_debug_state, which the dynamic linker calls when it has changed its list of libraries. */
SEC("uprobe")
int modules_changed(struct pt_regs *ctx) {
    struct thread *thread = current_thread();
    if (!thread || is_stale(bpf_get_attach_cookie(ctx), thread)) return 0;
    struct event told;
    head_of(&told, EVENT_MODULES, thread);
    tell_notice(&told, sizeof told);
    return 0;
}

/* ---- forks, execs and ends ---- */

/* The exec_count of a process that is profiled or is expected to be, or NULL. */
static __always_inline __u32 *exec_count_of(__u32 pid) {
    __u32 *exec_count = bpf_map_lookup_elem(&processes, &pid);
    return exec_count ? exec_count : bpf_map_lookup_elem(&expected, &pid);
}

SEC("raw_tp/sched_process_fork")
int process_forked(struct bpf_raw_tracepoint_args *ctx) {
    struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
    if (BPF_CORE_READ(child, pid) != BPF_CORE_READ(child, tgid)) return 0; /* a thread */
    struct event_fork told = {.event = {.kind = EVENT_FORK, .time = bpf_ktime_get_ns()}};
    told.event.pid = number_of(BPF_CORE_READ(parent, group_leader));
    __u32 *exec_count = exec_count_of(told.event.pid), zero = 0;
    if (!exec_count) return 0;
    told.event.tid = number_of(parent);
    told.event.exec_count = *exec_count;
    told.child = number_of(child);
    told.shares_memory = BPF_CORE_READ(child, mm) == BPF_CORE_READ(parent, mm);
    if (follows_children && bpf_map_update_elem(&expected, &told.child, &zero, BPF_ANY))
        count(COUNT_LOST_NOTICES);
    if (bpf_ringbuf_output(&ring, &told, sizeof told, BPF_RB_FORCE_WAKEUP) == 0) return 0;
    count(COUNT_LOST_NOTICES);
    if (follows_children) count(COUNT_LOST_CHILDREN);
    return 0;
}

SEC("raw_tp/sched_process_exec")
int process_replaced(struct bpf_raw_tracepoint_args *ctx) {
    struct task_struct *task = (void *)ctx->args[0];
    struct event told = {.kind = EVENT_EXEC, .time = bpf_ktime_get_ns()};
    told.pid = told.tid = number_of(task);
    __u32 *exec_count = exec_count_of(told.pid);
    if (!exec_count) return 0;
    told.exec_count = ++*exec_count;
    __u32 tid = BPF_CORE_READ(task, pid), former = (__u32)ctx->args[1];
    bpf_map_delete_elem(&stack_ends, &told.tid);
    bpf_map_delete_elem(&threads, &tid);
    bpf_map_delete_elem(&threads, &former);
    tell_notice(&told, sizeof told);
    return 0;
}

SEC("raw_tp/sched_process_exit")
int thread_ended(struct bpf_raw_tracepoint_args *ctx) {
    struct task_struct *task = (void *)ctx->args[0];
    __u32 tid = BPF_CORE_READ(task, pid), pid = number_of(BPF_CORE_READ(task, group_leader));
    __u32 *exec_count = exec_count_of(pid);
    if (!exec_count) return 0;
    struct thread *thread = bpf_map_lookup_elem(&threads, &tid);
    if (thread) {
        tell_thread(EVENT_THREAD_END, thread);
        bpf_map_delete_elem(&stack_ends, &thread->tid);
        bpf_map_delete_elem(&threads, &tid);
    }
    if (BPF_CORE_READ(task, signal, live.counter) != 0) return 0;
    struct event told = {.kind = EVENT_PROCESS_END,
        .pid = pid,
        .tid = number_of(task),
        .exec_count = *exec_count,
        .time = bpf_ktime_get_ns()};
    bpf_map_delete_elem(&processes, &pid);
    bpf_map_delete_elem(&expected, &pid);
    tell_notice(&told, sizeof told);
    return 0;
}

/* The tool runs this once, so that the current task is the tool itself. */
SEC("raw_tp")
int find_level(void *ctx) {
    (void)ctx;
    struct task_struct *task = (void *)bpf_get_current_task();
    pid_level = BPF_CORE_READ(task, thread_pid, level);
    return 0;
}
