/* The life of the process: fork gives the child a recording of its own, exit completes the figures. */
#include "core/events.h"
#include "core/memory.h"
#include "core/modules.h"
#include "core/sampler.h"
#include "core/stack_table.h"
#include "core/table.h"
#include "hook/options.h"
#include "hook/recorder.h"
#include "hook/scratch.h"
#include "hook/state.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- fork ------------------------------------------------------------------------------------------------
 */

static void after_fork_in_child(void) {
    if (is_recording() && !atomic_load_explicit(recorder.owner, memory_order_relaxed)) process_begin_child();
}

/* pthread_atfork sees fork(); the wiped word sees _Fork() and clone() too, at the child's next sample.
 * Neither fires in children that share our memory (vfork, posix_spawn): they change nothing. */
bool process_watch_forks(void) {
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK) != 0) return false;
    recorder.owner = page;
    atomic_store_explicit(recorder.owner, 1, memory_order_relaxed);
    return pthread_atfork(NULL, NULL, after_fork_in_child) == 0;
}

/* The child's figures begin with what it inherits as live. Its totals do not: it allocated nothing yet. */
static void restart_figures(struct recording *recording) {
    struct recording_header *header = recording->header;
    uint64_t stacks = atomic_load_explicit(&header->stacks.count, memory_order_relaxed);
    for (uint64_t i = 0; i < stacks; i++) {
        struct stack_record *stack = stack_table_get(recording, (uint32_t)i);
        memset((char *)stack + offsetof(struct stack_record, samples), 0,
            sizeof *stack - offsetof(struct stack_record, samples));
    }
    uint64_t bytes = 0, objects = 0;
    uint64_t segments = atomic_load_explicit(&header->live.count, memory_order_relaxed);
    for (uint64_t segment = 0; segment < segments; segment++) {
        struct live_bucket *bucket = recording_at(recording, header->live.segment[segment]);
        struct live_bucket *end = bucket + ((uint64_t)header->live.first << segment);
        for (; bucket < end; bucket++) {
            for (int slot = 0; slot < LIVE_SLOTS; slot++) {
                uint64_t key = bucket->key[slot] & LIVE_KEY_MASK;
                if (key == LIVE_FILLING) bucket->key[slot] &= ~LIVE_KEY_MASK; /* its thread is not here */
                if (key <= LIVE_FILLING) continue;
                const struct live_entry *entry = &bucket->entry[slot];
                event_count(stack_table_get(recording, entry->stack), entry, recorder.exact);
                bytes += entry->weight;
                objects += sampler_objects(entry->size, entry->weight);
            }
        }
    }
    for (uint64_t i = 0; i < stacks; i++) {
        struct stack_record *stack = stack_table_get(recording, (uint32_t)i);
        stack->peak_bytes = stack->inherited_bytes = stack->alloc_bytes;
        stack->peak_objects = stack->inherited_objects = stack->alloc_objects;
        stack->samples = stack->sampled_bytes = stack->bytes_variance = stack->objects_variance = 0;
    }
    header->live_bytes = header->peak_bytes = bytes;
    header->live_objects = header->peak_objects = objects;
    header->peak_epoch = 1; /* all stacks are at 0: unchanged since this peak */
    header->peak_time = header->last_event = clock_now();
    header->unknown_frees = header->orphan_bytes = 0;
    memset((void *)header->drops, 0, sizeof header->drops);
    struct timeline *timeline = recording_at(recording, header->timeline);
    memset((void *)timeline->bucket, 0, sizeof timeline->bucket);
    timeline->sequence = 0;
}

/* Of the parent's threads only the one that forked is here. */
static void restart_threads(struct recording *recording) {
    struct table *table = &recording->header->threads;
    for (uint64_t i = 0; i < table->count; i++) {
        struct thread_record *record = table_entry(recording, table, i);
        if (record == hook_thread) continue;
        memset(record, 0, sizeof *record);
    }
    if (!hook_thread) return;
    hook_thread->bytes = 0;
    hook_thread->interval = hook_countdown;
    hook_thread->samples = 0;
    hook_thread->tid = (int32_t)gettid();
    random_seed(hook_thread->random, random_next(hook_thread->random) ^ (uint64_t)getpid());
}

void process_begin_child(void) {
    int error = errno;
    struct recording *recording = &recorder.recording;
    atomic_store(&recorder.stage, STARTING);
    scratch_after_fork();
    modules_after_fork();
    stack_table_after_fork();
    unwind_forked();
    clock_after_fork();

    int r = recorder.follow ? -EEXIST : -ECANCELED;
    static char path[RECORDING_PATH_MAX];
    for (unsigned attempt = 0; r == -EEXIST && attempt < 1000; attempt++)
        r = options_path(recorder.pattern, getpid(), attempt, path, sizeof path) ? arena_fork(recording, path)
                                                                                 : -ENAMETOOLONG;
    if (r == 0) {
        struct recording_header *header = recording->header;
        header->pid = getpid();
        header->parent_pid = getppid();
        atomic_fetch_and(&header->flags, ~(uint32_t)(RECORDING_FINISHED | RECORDING_NO_GROWTH));
        atomic_fetch_or(&header->flags, RECORDING_FORKED);
        restart_figures(recording);
        restart_threads(recording);
    } else {
        arena_detach(recording); /* nothing this process does can reach the parent's recording */
        hook_thread = NULL;
        hook_countdown = UINT64_MAX;
    }
    atomic_store_explicit(recorder.owner, 1, memory_order_relaxed);
    atomic_store_explicit(&recorder.stage, r == 0 ? RECORDING : OFF, memory_order_release);
    errno = error;
}

/* ---- the end ---------------------------------------------------------------------------------------------
 */

/* What other threads have allocated since their last draw stands in their thread-local storage. One of them
 * may be gone by now without having told: the copy fails where a plain read would fault. */
static void flush_other(struct thread_record *record) {
    uint64_t countdown;
    if (!memory_copy(&countdown, record->countdown_address, sizeof countdown)) return;
    uint64_t interval = atomic_load_explicit(&record->interval, memory_order_relaxed);
    if (countdown > interval) return;
    atomic_fetch_add_explicit(&record->bytes, interval - countdown, memory_order_relaxed);
    atomic_store_explicit(&record->interval, countdown, memory_order_relaxed);
}

void recorder_finish(void) {
    if (!is_recording() || !atomic_load_explicit(recorder.owner, memory_order_relaxed)) return;
    struct recording *recording = &recorder.recording;
    struct recording_header *header = recording->header;
    if (header->pid != getpid()) return; /* a vforked child, in its parent's memory */
    int error = errno;
    uint64_t now = clock_now();
    for (uint64_t i = 0; i < atomic_load(&header->threads.count) && !recorder.exact; i++) {
        struct thread_record *record = threads_get(recording, (uint32_t)i);
        if (atomic_load(&record->state) != THREAD_RUNNING) continue;
        if (record == hook_thread)
            thread_flush(record);
        else
            flush_other(record);
    }
    if (hook_thread) thread_note_name(hook_thread);
    atomic_store_explicit(&header->last_event, now, memory_order_relaxed);
    arena_close(recording);
    errno = error;
}

__attribute__((constructor)) static void begin_process(void) {
    recorder_start();
}
__attribute__((destructor)) static void end_process(void) {
    recorder_finish();
}

/* exit() comes by the destructor above; these skip it. */
#define EXPORT __attribute__((visibility("default")))
EXPORT _Noreturn void _exit(int status);
EXPORT _Noreturn void _Exit(int status);

void _exit(int status) {
    recorder_finish();
    for (;;) syscall(SYS_exit_group, status);
}

void _Exit(int status) {
    _exit(status);
}
