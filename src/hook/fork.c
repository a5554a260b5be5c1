/* fork: the child gets a recording of its own that begins with what it inherits as live. The parent's is not
 * touched.
 *
 *     parent                                  child
 *     before_fork: copy of the live table ──► a private copy of that copy, by the kernel
 *     after_fork_in_parent: drops it          process_begin_child: a new recording, into which the live
 *                                             blocks are put; their stacks are read from the parent's,
 *                                             where they never change
 *
 * The live table itself cannot be read in the child: the parent's threads go on changing it, in memory that
 * the two share. */
#include "core/cancel.h"
#include "core/events.h"
#include "core/live_table.h"
#include "core/modules.h"
#include "core/sampler.h"
#include "core/stack_table.h"
#include "hook/memo.h"
#include "hook/recorder.h"
#include "hook/scratch.h"
#include "hook/state.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* What the forking thread has copied. */
struct inheritance {
    uint64_t size; /* of the mapping */
    uint64_t count;
    struct inherited {
        uint64_t address;
        struct live_entry entry;
    } block[];
};

static __thread struct inheritance *inheritance;

/* ---- in the parent ---- */

static uint64_t live_capacity(const struct recording_header *header, uint64_t segments) {
    return segments ? ((uint64_t)header->live.first << segments) * LIVE_SLOTS : 0;
}

/* Other threads may be at work on the table: an entry whose key has changed meanwhile is looked at again. */
static void copy_bucket(struct live_bucket *bucket, struct inheritance *to) {
    for (int slot = 0; slot < LIVE_SLOTS; slot++) {
        uint64_t key = atomic_load_explicit(&bucket->key[slot], memory_order_acquire), again;
        for (;; key = again) {
            if ((key & LIVE_KEY_MASK) <= LIVE_FILLING) break;
            to->block[to->count] = (struct inherited){key & LIVE_KEY_MASK, bucket->entry[slot]};
            atomic_thread_fence(memory_order_acquire);
            again = atomic_load_explicit(&bucket->key[slot], memory_order_relaxed);
            if (again != key) continue;
            to->count++;
            break;
        }
    }
}

static void before_fork(void) {
    if (!is_recording() || !recorder.follow) return;
    int error = errno;
    struct recording *recording = &recorder.recording;
    struct recording_header *header = recording->header;
    uint64_t segments = atomic_load_explicit(&header->live.count, memory_order_acquire);
    uint64_t size = sizeof(struct inheritance) + live_capacity(header, segments) * sizeof(struct inherited);
    void *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) {
        inheritance = memory;
        inheritance->size = size;
        for (uint64_t segment = 0; segment < segments; segment++) {
            struct live_bucket *bucket = recording_at(recording, header->live.segment[segment]);
            uint64_t buckets = (uint64_t)header->live.first << segment;
            for (uint64_t i = 0; i < buckets; i++) copy_bucket(&bucket[i], inheritance);
        }
    }
    errno = error;
}

static void drop_inheritance(void) {
    if (inheritance) munmap(inheritance, inheritance->size);
    inheritance = NULL;
}

/* ---- in the child ---- */

static void inherit_block(struct recording *parent, const struct inherited *inherited) {
    struct recording *recording = &recorder.recording;
    struct recording_header *header = recording->header;
    const struct stack_record *stack = stack_table_get(parent, inherited->entry.stack);
    const uint64_t *frames = recording_at(parent, stack->frames);
    struct live_entry entry = inherited->entry, former;
    bool is_new;
    entry.stack = stack_table_intern(recording, frames, stack->frame_count, stack->flags, &is_new);
    entry.thread = UINT16_MAX; /* of another process */
    if (is_new) modules_cover(recording, frames, stack->frame_count, clock_now());
    if (live_table_insert(recording, inherited->address, &entry, &former) == LIVE_NO_ROOM) {
        header->drops[DROP_LIVE_TABLE]++;
        return;
    }
    event_count(stack_table_get(recording, entry.stack), &entry, recorder.exact);
    header->live_bytes += entry.weight;
    header->live_objects += sampler_objects(entry.size, entry.weight);
}

/* The totals do not count what was inherited: the child has allocated nothing yet. */
static void settle_figures(struct recording *recording) {
    struct recording_header *header = recording->header;
    for (uint64_t i = 0; i < header->stacks.count; i++) {
        struct stack_record *stack = stack_table_get(recording, (uint32_t)i);
        stack->peak_bytes = stack->inherited_bytes = stack->alloc_bytes;
        stack->peak_objects = stack->inherited_objects = stack->alloc_objects;
        stack->samples = stack->sampled_bytes = stack->bytes_variance = stack->objects_variance = 0;
    }
    header->peak_bytes = header->live_bytes;
    header->peak_objects = header->live_objects;
    header->peak_epoch = 1; /* all stacks are at 0: unchanged since this peak */
    header->peak_time = header->last_event = clock_now();
    atomic_fetch_or(&header->flags, RECORDING_FORKED);
}

void process_begin_child(void) {
    WITHOUT_CANCELLATION;
    int error = errno;
    atomic_store(&recorder.stage, STARTING);
    scratch_after_fork();
    modules_after_fork();
    stack_table_after_fork();
    unwind_forked();
    clock_after_fork();
    memo_free(); /* it speaks of the parent's stacks */
    hook_thread = NULL;
    hook_countdown = 0;

    static struct recording parent;
    parent = recorder.recording;
    int r = recorder.follow ? start_child_recording(parent.header) : -ECANCELED;
    if (r == 0) {
        for (uint64_t i = 0; inheritance && i < inheritance->count; i++)
            inherit_block(&parent, &inheritance->block[i]);
        settle_figures(&recorder.recording);
    } else {
        hook_countdown = UINT64_MAX;
    }
    drop_inheritance();
    arena_unmap(&parent);
    atomic_store_explicit(recorder.owner, 1, memory_order_relaxed);
    atomic_store_explicit(&recorder.stage, r == 0 ? RECORDING : OFF, memory_order_release);
    errno = error;
}

static void after_fork_in_child(void) {
    if (is_recording() && !atomic_load_explicit(recorder.owner, memory_order_relaxed)) process_begin_child();
}

/* pthread_atfork sees fork(); the wiped word sees _Fork() and clone() too, at the child's next sample: it
 * then begins without an inheritance. Neither fires in children that share our memory (vfork, posix_spawn):
 * they change nothing. */
bool process_watch_forks(void) {
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK) != 0) return false;
    recorder.owner = page;
    atomic_store_explicit(recorder.owner, 1, memory_order_relaxed);
    return pthread_atfork(before_fork, drop_inheritance, after_fork_in_child) == 0;
}
