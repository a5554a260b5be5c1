#include "core/thread_table.h"

#include "core/heap_size.h"
#include "core/running_sums.h"
#include "core/table.h"

#include <stddef.h>

#define THREADS_MOST 65536
#define ENDED_KEPT   1024 /* up to so many records in all, ended threads with samples keep theirs */
#define SEARCH_MOST  256  /* records that a search for one to take looks at */

/* A record passes from one owner to the next by its state:
 *
 *     NEW ── filled ──► RUNNING ── ends ──► ENDED or FREE ── taken ──► NEW
 *
 * Stores to RUNNING, ENDED and FREE are releases. The thread that takes a record acquires what the last owner left,
 * so two owners never write at the same time. A reader that acquires RUNNING sees the record cleared. The owner
 * adds its name and the address of its countdown afterwards; they count once `interval` is not 0. While a reader
 * copies a record, the record may pass to another owner. So a reader compares the record from before and
 * after the copy (recording_copy_add_countdown in recording_copy.h). */

void thread_table_start(struct recording *recording) {
    table_start(&recording->header->threads, sizeof(struct thread_record), 4);
}

struct thread_record *thread_table_get(struct recording *recording, uint32_t thread) {
    return table_entry(recording, &recording->header->threads, thread);
}

static bool take_from(struct thread_record *record, uint32_t state) {
    /* Relaxed: a first look, which spares the exchange in most cases. The exchange checks again. */
    return atomic_load_explicit(&record->state, memory_order_relaxed) == state &&
           atomic_compare_exchange_strong_explicit(
               &record->state, &state, THREAD_NEW, memory_order_acquire, memory_order_relaxed);
}

/* Looks for a record to take, in a stretch of the table that moves on from call to call. UINT32_MAX if there is
 * none. */
static uint32_t reuse(struct recording *recording, uint32_t count) {
    static _Atomic uint32_t hint; /* where to begin. Relaxed: any value will do */
    uint32_t start = atomic_fetch_add_explicit(&hint, SEARCH_MOST / 4, memory_order_relaxed);
    for (uint32_t i = 0; i < SEARCH_MOST && i < count; i++) {
        uint32_t thread = (start + i) % count;
        struct thread_record *record = thread_table_get(recording, thread);
        if (take_from(record, THREAD_FREE)) return thread;
        if (count > ENDED_KEPT && take_from(record, THREAD_ENDED)) {
            /* Relaxed: orphan_bytes is a sum by which nothing is ordered, and `bytes` was acquired with the record. */
            atomic_fetch_add_explicit(&recording->header->orphan_bytes,
                atomic_load_explicit(&record->bytes, memory_order_relaxed), memory_order_relaxed);
            return thread;
        }
    }
    return UINT32_MAX;
}

/* Clears all but state and tid. Atomically, since a reader may be copying the record. */
static void clear(struct thread_record *record) {
    const size_t first = offsetof(struct thread_record, name) / 8;
    static_assert(offsetof(struct thread_record, name) == 8, "state and tid are one word");
    for (size_t i = first; i < sizeof *record / 8; i++)
        __atomic_store_n((uint64_t *)record + i, 0, __ATOMIC_RELAXED);
}

uint32_t thread_table_register(struct recording *recording, int32_t tid, uint64_t now) {
    struct table *table = &recording->header->threads;
    /* Acquire: pairs with the release in table_append_many, so the segments of the counted records are seen. */
    uint32_t count = (uint32_t)atomic_load_explicit(&table->count, memory_order_acquire);
    uint32_t thread = count < 16 ? UINT32_MAX : reuse(recording, count);
    if (thread == UINT32_MAX) thread = (uint32_t)table_append(recording, table, THREADS_MOST);
    if (thread == UINT32_MAX) thread = count ? reuse(recording, count) : UINT32_MAX;
    if (thread == UINT32_MAX) return UINT32_MAX;

    struct thread_record *record = thread_table_get(recording, thread);
    clear(record);
    /* Relaxed: the release of RUNNING publishes them. Atomic, since a reader may be copying the record. */
    __atomic_store_n(&record->number, thread, __ATOMIC_RELAXED);
    __atomic_store_n(&record->start_time, now, __ATOMIC_RELAXED);
    atomic_store_explicit(&record->tid, tid, memory_order_relaxed);
    atomic_store_explicit(&record->state, THREAD_RUNNING, memory_order_release);
    return thread;
}

void thread_table_end(struct recording *recording, struct thread_record *record, uint64_t now) {
    heap_size_give_slack(recording, record, now);
    running_sums_hand_over(recording->header, &record->sums);
    atomic_store_explicit(&record->end_time, now, memory_order_relaxed);
    if (atomic_load_explicit(&record->samples, memory_order_relaxed)) {
        atomic_store_explicit(&record->state, THREAD_ENDED, memory_order_release);
        return;
    }
    /* Relaxed: a sum by which nothing is ordered. For a moment, a reader may count the bytes at both places. */
    atomic_fetch_add_explicit(&recording->header->orphan_bytes,
        atomic_load_explicit(&record->bytes, memory_order_relaxed), memory_order_relaxed);
    atomic_store_explicit(&record->bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&record->state, THREAD_FREE, memory_order_release);
}
