#include "record/life/fork.h"

#include "core/arena_copy.h"
#include "core/code_table.h"
#include "core/events.h"
#include "core/heap_table.h"
#include "core/live_table.h"
#include "core/module_table.h"
#include "core/name_table.h"
#include "core/peak_halves.h"
#include "core/stack_table.h"
#include "platform/calls.h"
#include "platform/pages.h"
#include "platform/signals.h"
#include "record/api/own_heaps.h"
#include "record/api/scopes.h"
#include "record/intercept/export.h"
#include "record/life/start.h"
#include "record/sample/capture_buffers.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"
#include "record/sample/work.h"
#include "record/walkcache/growing_sets.h"
#include "record/walkcache/walk_cache.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

/* The forking thread's copy of the live table. */
struct inheritance {
    uint64_t size;   /* of this copy, in bytes */
    uint64_t active; /* of the parent's header */
    uint64_t count;
    struct live_entry entry[]; /* free slots are all zero */
};

static __thread struct inheritance *inheritance;

/* The forking thread's copy of the whole recording, if it forks in the middle of the recorder's work. */
static __thread struct arena_copy *copy_to_go_on_in;

/* A forked child that has left its parent's state, and has no recording of its own yet. */
static struct {
    int pid; /* of the child; 0: there is none */
    struct inheritance *inheritance;
} waiting;

/* ---- in the parent ---- */

/* A signal handler that forks may interrupt this function and call it, too. The exchange hands the copy to one of
 * the two. Relaxed: the pointer is the thread's own, and its handlers are part of the thread. */
static ANY_STACK void drop_inheritance(void) {
    struct inheritance *former = __atomic_exchange_n(&inheritance, NULL, __ATOMIC_RELAXED);
    if (former) pages_give(former, former->size);
    struct arena_copy *former_copy = __atomic_exchange_n(&copy_to_go_on_in, NULL, __ATOMIC_RELAXED);
    if (former_copy) arena_copy_drop(former_copy);
}

static struct inheritance *copy_live_table(struct recording *recording) {
    /* Acquire: pairs with the release that raised the count, so that the table's segments with so many slots are
     * seen. */
    uint64_t count = atomic_load_explicit(&recording->header->live.count, memory_order_acquire);
    uint64_t size = sizeof(struct inheritance) + count * sizeof(struct live_entry);
    struct inheritance *copy = pages_take(size);
    if (!copy) return NULL;
    copy->size = size;
    copy->active = atomic_load_explicit(&recording->header->active, memory_order_relaxed);
    copy->count = count;
    /* Other threads may change entries meanwhile: live_table_copy tries again. A slot that changes a thousand
     * times during its copy belongs to blocks of short life, and is left free in the copy. */
    for (uint32_t slot = 0; slot < count; slot++)
        live_table_copy(live_table_at(recording, slot), 1000, &copy->entry[slot]);
    return copy;
}

/* In the middle of the recorder's work the live table is copied later, by the child, when that work is done. A child
 * that is in such work is given a copy also if it is not to be recorded. */
void fork_before(bool child_returns) {
    if (!recorder_is_recording()) return;
    HOLD_SIGNALS;
    drop_inheritance(); /* copies are left here if a signal handler has jumped out of another fork */
    if (child_returns && work_is_interrupted())
        copy_to_go_on_in = arena_copy_make(&recorder.recording);
    else if (recorder.follow)
        inheritance = copy_live_table(&recorder.recording);
}

/* ---- in the child ---- */

/* The number in this recording of the parent's stack `number`. `known`: what former calls returned, plus one; 0:
 * not known. */
static uint32_t inherit_stack(struct recording *parent, uint32_t number, uint32_t *known) {
    if (known[number]) return known[number] - 1;
    const struct stack_record *stack = stack_table_get(parent, number);
    struct stack_key key = {.frames = arena_at(parent, stack->frames),
        .frame_count = stack->frame_count,
        .heap = stack->heap,
        .type = stack->type,
        .flags = stack->flags};
    uint32_t here = stack_table_intern(&recorder.recording, &key);
    known[number] = here + 1;
    return here;
}

static void note_missing(uint64_t blocks) {
    atomic_fetch_add_explicit(
        &recorder.recording.header->drops[DROP_INHERITED], blocks, memory_order_relaxed);
}

/* Blocks that the parent's recording had dropped may be live in the child, and are missing in its recording,
 * too. */
static void inherit_drops(const struct recording_header *parent) {
    static const enum drop lost[] = {
        DROP_LIVE_TABLE, DROP_THREAD, DROP_SCRATCH, DROP_ADDRESS, DROP_INHERITED};
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) note_missing(parent->drops[lost[i]]);
}

static uint64_t count_live(struct recording *recording) {
    uint64_t count = 0, slots = atomic_load_explicit(&recording->header->live.count, memory_order_acquire);
    for (uint32_t slot = 0; slot < slots; slot++)
        count += live_table_address(live_table_at_checked(recording, slot)) != 0;
    return count;
}

/* Takes over the blocks of the copy. They keep their slots, because the numbers of the slots are in their marks
 * and in the address index. False: there is no copy, or no room. */
static bool inherit(struct recording *parent, struct inheritance *copy) {
    if (!copy) return false;
    uint64_t stacks = atomic_load_explicit(&parent->header->stacks.count, memory_order_acquire);
    size_t size = stacks * sizeof(uint32_t);
    uint32_t *known = pages_take(size);
    if (!known) return false;
    struct live_entry *entry = copy->entry, *end = entry + copy->count;
    for (; entry < end; entry++)
        if (live_table_address(entry)) entry->stack = inherit_stack(parent, entry->stack, known);
    pages_give(known, size);
    if (!live_table_inherit(&recorder.recording, copy->entry, copy->count)) return false;
    for (entry = copy->entry; entry < end; entry++)
        if (live_table_address(entry)) events_inherit(&recorder.recording, entry);
    return true;
}

/* What was inherited is live, but was not allocated by this process: it is noted beside the totals, which readers
 * subtract it from. The heap's size and peak are those of this moment. */
static void settle_figures(struct recording *recording) {
    struct recording_header *header = recording->header;
    for (uint64_t i = 0; i < header->stacks.count; i++) {
        struct stack_record *stack = stack_table_get(recording, (uint32_t)i);
        stack->peak_bytes = stack->inherited_bytes = stack->alloc_bytes;
        stack->peak_objects = stack->inherited_objects = stack->alloc_objects;
    }
    header->peak_bytes = header->live_bytes;
    peak_halves_restart(header);
    /* The stacks have epoch 0, which says that they have not changed since this peak. */
    header->peak_epoch = 1;
    header->peak_time = header->last_event = header->inherited_until = clock_now();
    atomic_fetch_or(&header->flags, RECORDING_FORKED);
}

/* ---- in a child that was forked in the middle of the recorder's work ----
 *
 * The handler returns into a change of the tables. The change goes on in a private copy of them. Meanwhile the owner
 * word is 0, as in every new child: the next call that is not nested in that work begins the child's recording
 * (recorder_begin), which inherits from the copy. */

/* The parent's header, as shared memory, while the recording is private. */
static struct recording_header *shared_header;

static void go_on_in_copy(void) {
    if (recorder.recording.is_private) return; /* the parent's was a private copy already */
    HOLD_SIGNALS;
    struct arena_copy *copy = __atomic_exchange_n(&copy_to_go_on_in, NULL, __ATOMIC_RELAXED);
    shared_header = arena_copy_adopt(&recorder.recording, copy);
    recorder.recording.header->pid = call_getpid();
    recorder_countdown = 0;
}

static void note_lost_child(struct recording *parent) {
    struct recording_header *header = parent->is_private ? shared_header : parent->header;
    if (header) atomic_fetch_add_explicit(&header->drops[DROP_CHILD], 1, memory_order_relaxed);
}

/* Leaves what the parent's recorder had under way, and the calling thread's pointers into the parent's recording. */
static void leave_parent(void) {
    capture_buffers_after_fork();
    stack_table_after_fork();
    own_heaps_after_fork();
    unwind_forked();
    clock_after_fork();
    walk_cache_free(); /* it holds numbers of the parent's stacks */
    growing_sets_after_fork();
    recorder.is_child = true;
    recorder.generation++;
    recorder_thread = NULL;
    recorder_countdown = recorder_early_interval = 0;
    struct inheritance *copy = __atomic_exchange_n(&inheritance, NULL, __ATOMIC_RELAXED);
    if (copy) waiting.inheritance = copy;
    waiting.pid = call_getpid();
}

/* Makes the child's recording, with what the child has inherited. Returns 0 or a negative errno. */
static int make_recording(struct recording *parent) {
    struct inheritance *copy = waiting.inheritance;
    int r = recorder.follow ? start_in_child(parent->header) : -ECANCELED;
    if (r < 0) return r;
    if (!(module_table_inherit(&recorder.recording, parent) &&
            name_table_inherit(&recorder.recording, parent) &&
            heap_table_inherit(&recorder.recording, parent) &&
            code_table_inherit(&recorder.recording, parent))) {
        arena_discard(&recorder.recording);
        return -ENOSPC;
    }
    /* The parent's own flag may have changed since the fork. */
    recorder.recording.header->active = copy ? copy->active : parent->header->active;
    inherit_drops(parent->header);
    if (!inherit(parent, copy)) note_missing(count_live(parent));
    settle_figures(&recorder.recording);
    return 0;
}

/* Whether the calling thread may begin the child's recording. If no fork handler ran, the child may have made threads
 * before one of them got here. The forking thread is the one whose id is the process's. Its thread-local pointers
 * into the parent's recording can be reset by itself alone: if another thread gets here first, the child is not
 * recorded. Nor is a child that may not open a file. */
static bool can_begin(void) {
    return system_calls_allowed() && (waiting.pid || call_gettid() == call_getpid());
}

void fork_begin_child(void) {
    /* A child that shares the memory of one that is waiting (vfork) begins nothing. */
    if (waiting.pid && system_calls_allowed() && waiting.pid != call_getpid()) return;
    HOLD_SIGNALS;
    int stage = RECORDING;
    if (!atomic_compare_exchange_strong(&recorder.stage, &stage, STARTING)) return;
    if (!can_begin()) {
        if (recorder.follow) note_lost_child(&recorder.recording);
        atomic_store_explicit(&recorder.stage, OFF, memory_order_release);
        return;
    }
    if (recorder.recording.is_private) inheritance = copy_live_table(&recorder.recording);
    if (!waiting.pid) leave_parent();

    static struct recording parent;
    parent = recorder.recording;
    recorder.recording.is_private = false;
    int r = make_recording(&parent);
    if (r < 0) {
        if (r != -ECANCELED) note_lost_child(&parent);
        recorder_countdown = UINT64_MAX;
        scopes_switch(false);
    }
    if (waiting.inheritance) pages_give(waiting.inheritance, waiting.inheritance->size);
    waiting.inheritance = NULL;
    waiting.pid = 0;
    drop_inheritance();
    arena_unmap(&parent);
    if (shared_header) arena_copy_forget_header(shared_header);
    shared_header = NULL;
    /* Order and release as in start_with (start.c). */
    if (r == 0) atomic_store_explicit(recorder.owner, 1, memory_order_release);
    atomic_store_explicit(&recorder.stage, r == 0 ? RECORDING : OFF, memory_order_release);
}

static bool is_new_child(void) {
    /* Relaxed: a new child has one thread. */
    if (atomic_load_explicit(&recorder.stage, memory_order_relaxed) != RECORDING) return false;
    /* An emulated kernel (QEMU's user mode) may accept MADV_WIPEONFORK and not do it. */
    if (system_calls_allowed() && recorder.recording.header->pid != call_getpid())
        atomic_store(recorder.owner, 0);
    return !recorder_is_recording();
}

/* The child's recording is made when it first samples an allocation or frees a sample. So a child that only becomes
 * another program makes no file. */
static ANY_STACK void after_fork_in_child(void) {
    if (!is_new_child()) return;
    if (!waiting.pid && work_is_interrupted()) {
        go_on_in_copy();
    } else if (!system_calls_allowed()) {
        fork_begin_child(); /* which counts it as lost */
    } else {
        leave_parent();
        recorder_draw_early();
    }
}

static ANY_STACK void before_fork(void) {
    fork_before(true);
}

/* A fork without handlers may have to work in a signal handler, where less is allowed. The child begins its recording
 * at its next allocation. */
void fork_after_bare(bool in_child) {
    if (!in_child) {
        drop_inheritance();
    } else if (is_new_child()) {
        if (waiting.pid) { /* the child of one that is waiting waits in its place */
            if (system_calls_allowed()) waiting.pid = call_getpid();
            return;
        }
        if (work_is_interrupted()) go_on_in_copy();
        recorder_countdown = 0;
    }
}

void fork_child_elsewhere(void) {
    recorder_work = NULL;
}

/* The handlers of pthread_atfork notice fork(), and bare_forks.c some other ways to fork. The owner word, which
 * the kernel sets to 0 in a child, tells of all of them, at the child's next allocation that the recorder is
 * asked about; a child that is noticed only then inherits nothing. Children that share the memory (vfork,
 * posix_spawn) run no handlers and see the owner word of their parent: they change nothing. */
bool fork_watch(void) {
    void *page = call_mmap(PAGE_SIZE_MIN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!page || call_madvise(page, PAGE_SIZE_MIN, MADV_WIPEONFORK) != 0) return false;
    recorder.owner = page;
    return pthread_atfork(before_fork, drop_inheritance, after_fork_in_child) == 0;
}

bool fork_shares_memory(void) {
    return recorder_is_recording() && system_calls_allowed() &&
           recorder.recording.header->pid != call_getpid();
}
