#include "record/life/fork.h"

#include "core/code_table.h"
#include "core/events.h"
#include "core/heap_table.h"
#include "core/live_table.h"
#include "core/module_table.h"
#include "core/name_table.h"
#include "core/stack_table.h"
#include "platform/caller_state.h"
#include "platform/pages.h"
#include "platform/system.h"
#include "record/api/own_heaps.h"
#include "record/api/scopes.h"
#include "record/life/start.h"
#include "record/sample/capture_buffers.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"
#include "record/walkcache/growing_sets.h"
#include "record/walkcache/walk_cache.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What the forking thread has copied. */
struct inheritance {
    uint64_t size; /* of the mapping */
    uint64_t active;
    uint64_t count;
    struct live_entry entry[];
};

static __thread struct inheritance *inheritance;

/* ---- in the parent ---- */

/* A handler that forks may come at any time, and drops what it finds: one of the two has it. Relaxed: it is
 * the thread's own. */
static void drop_inheritance(void) {
    struct inheritance *former = __atomic_exchange_n(&inheritance, NULL, __ATOMIC_RELAXED);
    if (former) pages_give(former, former->size);
}

void fork_before(void) {
    if (!recorder_is_recording() || !recorder.follow) return;
    KEEP_CALLER_STATE;
    struct recording *recording = &recorder.recording;
    /* Acquire: the segments that hold so many entries are seen. */
    uint64_t count = atomic_load_explicit(&recording->header->live.count, memory_order_acquire);
    uint64_t size = sizeof(struct inheritance) + count * sizeof(struct live_entry);
    struct inheritance *copy = pages_take(size);
    if (!copy) return;
    copy->size = size;
    copy->active = atomic_load_explicit(&recording->header->active, memory_order_relaxed);
    copy->count = count;
    /* What is free is left at zero. Other threads may be at work: one that changes again and again, a
     * thousand times over, belongs to blocks that come and go. */
    for (uint32_t slot = 0; slot < count; slot++)
        live_table_copy(live_table_at(recording, slot), 1000, &copy->entry[slot]);
    drop_inheritance(); /* of a signal handler's fork, from which it jumped */
    inheritance = copy;
}

/* ---- in the child ---- */

/* The number that a stack of the parent has here. `known` holds what was found out before, plus one. */
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

/* What the parent had dropped may be live here as well as there. */
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

/* Blocks keep their slots: the numbers stand in their marks and in the index. False: there is no room. */
static bool inherit(struct recording *parent) {
    if (!inheritance) return false;
    uint64_t stacks = atomic_load_explicit(&parent->header->stacks.count, memory_order_acquire);
    size_t size = stacks * sizeof(uint32_t);
    uint32_t *known = pages_take(size);
    if (!known) return false;
    struct live_entry *entry = inheritance->entry, *end = entry + inheritance->count;
    for (; entry < end; entry++)
        if (live_table_address(entry)) entry->stack = inherit_stack(parent, entry->stack, known);
    pages_give(known, size);
    if (!live_table_inherit(&recorder.recording, inheritance->entry, inheritance->count)) return false;
    for (entry = inheritance->entry; entry < end; entry++)
        if (live_table_address(entry)) events_inherit(&recorder.recording, entry);
    return true;
}

/* The totals do not count what was inherited: the child has allocated nothing yet. */
static void settle_figures(struct recording *recording) {
    struct recording_header *header = recording->header;
    for (uint64_t i = 0; i < header->stacks.count; i++) {
        struct stack_record *stack = stack_table_get(recording, (uint32_t)i);
        stack->peak_bytes = stack->inherited_bytes = stack->alloc_bytes;
        stack->peak_objects = stack->inherited_objects = stack->alloc_objects;
    }
    header->peak_bytes = header->live_bytes;
    header->peak_epoch = 1; /* all stacks are at 0: unchanged since this peak */
    header->peak_time = header->last_event = clock_now();
    atomic_fetch_or(&header->flags, RECORDING_FORKED);
}

static void note_lost_child(struct recording *parent) {
    atomic_fetch_add_explicit(&parent->header->drops[DROP_CHILD], 1, memory_order_relaxed);
}

void fork_begin_child(void) {
    KEEP_CALLER_STATE;
    int stage = RECORDING;
    if (!atomic_compare_exchange_strong(&recorder.stage, &stage, STARTING)) return;
    /* Where no fork handler ran, another thread may be the first to get here. What the forking one, whose
     * number is the process's, holds of the parent cannot be taken from it: such a child is not recorded.
     * Nor is one that may not open a file. */
    if (!system_calls_allowed() || gettid() != getpid()) {
        if (recorder.follow) note_lost_child(&recorder.recording);
        atomic_store_explicit(&recorder.stage, OFF, memory_order_release);
        return;
    }
    capture_buffers_after_fork();
    stack_table_after_fork();
    own_heaps_after_fork();
    unwind_forked();
    clock_after_fork();
    walk_cache_free(); /* it speaks of the parent's stacks */
    growing_sets_after_fork();
    recorder.is_child = true;
    recorder.generation++;
    recorder_thread = NULL;
    recorder_countdown = 0;

    static struct recording parent;
    parent = recorder.recording;
    int r = recorder.follow ? start_in_child(parent.header) : -ECANCELED;
    if (r == 0 && !(module_table_inherit(&recorder.recording, &parent) &&
                      name_table_inherit(&recorder.recording, &parent) &&
                      heap_table_inherit(&recorder.recording, &parent) &&
                      code_table_inherit(&recorder.recording, &parent))) {
        arena_discard(&recorder.recording);
        r = -ENOSPC;
    }
    if (r == 0) {
        /* The parent may have been stopped or started since the fork. */
        recorder.recording.header->active = inheritance ? inheritance->active : parent.header->active;
        inherit_drops(parent.header);
        if (!inherit(&parent)) note_missing(count_live(&parent));
        settle_figures(&recorder.recording);
    } else {
        if (r != -ECANCELED) note_lost_child(&parent);
        recorder_countdown = UINT64_MAX;
        scopes_switch(false);
    }
    drop_inheritance();
    arena_unmap(&parent);
    /* Release, in the order of start_with (start.c). */
    if (r == 0) atomic_store_explicit(recorder.owner, 1, memory_order_release);
    atomic_store_explicit(&recorder.stage, r == 0 ? RECORDING : OFF, memory_order_release);
}

static bool is_new_child(void) {
    /* Relaxed: the one thread that there is in a new child. */
    if (atomic_load_explicit(&recorder.stage, memory_order_relaxed) != RECORDING) return false;
    /* A kernel that is emulated (QEMU) may say that it wipes the word, and not do it. */
    if (system_calls_allowed() && recorder.recording.header->pid != getpid()) atomic_store(recorder.owner, 0);
    return !recorder_is_recording();
}

static void after_fork_in_child(void) {
    if (is_new_child()) fork_begin_child();
}

/* A bare fork may come from a signal handler that has interrupted the recorder: what that works with is left
 * alone, and the child begins at its next allocation. */
void fork_after_bare(bool in_child) {
    if (!in_child)
        drop_inheritance();
    else if (is_new_child())
        recorder_countdown = 0;
}

/* pthread_atfork sees fork(), and bare_forks.c what it can of the others. The wiped word sees all of them, at
 * the child's next event: it then begins without an inheritance. Neither fires in children that share our
 * memory (vfork, posix_spawn): they change nothing. */
bool fork_watch(void) {
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK) != 0) return false;
    recorder.owner = page;
    return pthread_atfork(fork_before, drop_inheritance, after_fork_in_child) == 0;
}

bool fork_shares_memory(void) {
    return recorder_is_recording() && system_calls_allowed() && recorder.recording.header->pid != getpid();
}
