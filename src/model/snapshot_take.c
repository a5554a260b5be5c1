/* Takes a consistent copy of tables that a program goes on writing. core/recording_copy.h says in which order parts
 * and words are copied, and why that makes the copy consistent.
 *
 * The file is mapped shared and copied word by word. read() would not do, because nothing is known about the order
 * in which the kernel copies bytes. Somebody may cut the file while it is mapped; mapped_file.h says what happens
 * then. */
#include "model/snapshot.h"

#include "base/memory.h"
#include "base/nanoseconds.h"
#include "core/live_table.h"
#include "core/recording_copy.h"
#include "model/header.h"
#include "model/mapped_file.h"
#include "model/writer_process.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct taking {
    struct snapshot *snapshot;
    struct mapped_file file;
    bool has_holes; /* more than half of the file is not on disk: holes are looked for and not read */
    bool was_short; /* at some moment of the copy, the file was shorter than its header said */
};

/* Copies the entry at an offset. */
typedef void copy_entry(struct taking *taking, uint64_t offset);

static void mark_used(struct snapshot *snapshot, uint64_t offset, uint64_t length) {
    for (uint64_t part = offset / SNAPSHOT_PART_SIZE; part <= (offset + length - 1) / SNAPSHOT_PART_SIZE;
         part++)
        snapshot->parts[part / 64] |= UINT64_C(1) << (part % 64);
}

static void copy_words(struct taking *taking, uint64_t offset, uint64_t length) {
    if (recording_copy_words(taking->snapshot->bytes + offset, taking->file.bytes + offset, length))
        mark_used(taking->snapshot, offset, length);
}

/* Finds the next stretch [*start, *stop) of [*start, end) that is no hole in the file. False: there is none. The
 * recorder reserves a recording on disk as a whole, so most files have no holes. One that has mostly holes may be
 * far larger than the disk, and reading it all would take for ever. */
static bool next_stretch(const struct taking *taking, uint64_t *start, uint64_t *stop, uint64_t end) {
    *stop = end;
    if (*start >= end) return false;
    if (!taking->has_holes) return true;
    off_t data = lseek(taking->file.descriptor, (off_t)*start, SEEK_DATA);
    if (data < 0) return errno != ENXIO;
    off_t hole = lseek(taking->file.descriptor, data, SEEK_HOLE);
    if ((uint64_t)data >= end) return false;
    *start = (uint64_t)data;
    if (hole > data && (uint64_t)hole < end) *stop = (uint64_t)hole;
    return true;
}

static void copy_plain(struct taking *taking, uint64_t start, uint64_t end) {
    for (uint64_t stop; next_stretch(taking, &start, &stop, end); start = stop)
        for (uint64_t at = start & ~UINT64_C(7); at < stop;) {
            uint64_t length = SNAPSHOT_PART_SIZE - at % SNAPSHOT_PART_SIZE;
            if (length > stop - at) length = (stop - at + 7) & ~UINT64_C(7);
            copy_words(taking, at, length);
            at += length;
        }
}

static void copy_table(struct taking *taking, const struct checked_table *table, copy_entry *copy) {
    for (uint32_t k = 0; k < table->segment_count; k++) {
        const struct checked_segment *segment = &table->segment[k];
        uint64_t start = segment->offset, end = start + segment->entries * table->entry_size, next = 0;
        for (uint64_t stop; next_stretch(taking, &start, &stop, end); start = stop) {
            uint64_t index = (start - segment->offset) / table->entry_size;
            if (index < next) index = next;
            for (; index < segment->entries && segment->offset + index * table->entry_size < stop; index++)
                copy(taking, segment->offset + index * table->entry_size);
            next = index;
        }
    }
}

/* How often an entry that changes is copied again. If nobody writes the file, no entry changes. */
static int tries(const struct taking *taking) {
    return taking->snapshot->writer ? RECORDING_COPY_TRIES : 1;
}

/* The copy stays zero if the slot is free, or if it was changed during each attempt. */
static void copy_live_entry(struct taking *taking, uint64_t offset) {
    const struct live_entry *from = (const struct live_entry *)(taking->file.bytes + offset);
    struct live_entry copy;
    if (!live_table_copy(from, tries(taking), &copy)) return;
    memcpy(taking->snapshot->bytes + offset, &copy, sizeof copy);
    mark_used(taking->snapshot, offset, sizeof copy);
}

static void copy_stack(struct taking *taking, uint64_t offset) {
    const struct stack_record *from = (const struct stack_record *)(taking->file.bytes + offset);
    struct stack_record *to = (struct stack_record *)(taking->snapshot->bytes + offset);
    if (recording_copy_stack(to, from, tries(taking))) mark_used(taking->snapshot, offset, sizeof *to);
}

static void copy_module(struct taking *taking, uint64_t offset) {
    const struct module_record *from = (const struct module_record *)(taking->file.bytes + offset);
    if (atomic_load_explicit(&from->complete, memory_order_acquire) == 1)
        copy_words(taking, offset, sizeof *from);
}

/* Reads what is left of a thread's countdown from the memory of the program. */
static bool read_countdown(int pid, uint64_t address, uint64_t *ret_countdown) {
    struct iovec here = {ret_countdown, sizeof *ret_countdown};
    struct iovec there = {(void *)(uintptr_t)address, sizeof *ret_countdown};
    bool read = process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof *ret_countdown;
    /* Keeps loads of the thread's record that follow behind this read: they are compared with earlier ones, to see
     * whether the thread drew meanwhile. */
    atomic_thread_fence(memory_order_acquire);
    return read;
}

/* bytes(t) = record.bytes + (record.interval − countdown), for a running thread t: since its last draw the thread
 * has allocated what its countdown has come down by. The countdown is in the program's memory. The record is copied
 * before and after reading it; if both copies agree, the thread did not draw meanwhile, and the sum is right. */
static void copy_thread(struct taking *taking, uint64_t offset) {
    struct thread_record *to = (struct thread_record *)(taking->snapshot->bytes + offset);
    const struct recording_header *header = snapshot_header(taking->snapshot);
    bool draws = taking->snapshot->writer && !(header->flags & (RECORDING_EXACT | RECORDING_FINISHED));
    for (int attempt = 0; attempt < tries(taking); attempt++) {
        copy_words(taking, offset, sizeof *to);
        uint64_t countdown;
        if (!draws || to->state != THREAD_RUNNING || to->interval == 0 ||
            !read_countdown(taking->snapshot->writer, to->countdown_address, &countdown))
            return;
        struct thread_record before = *to;
        copy_words(taking, offset, sizeof *to);
        if (recording_copy_add_countdown(to, &before, countdown)) return;
    }
}

static void copy_timeline(struct taking *taking) {
    struct snapshot *snapshot = taking->snapshot;
    uint64_t offset = snapshot_header(snapshot)->timeline;
    uint64_t size = mapped_file_size(&taking->file);
    if (offset < HEADER_SPAN || offset % 8 != 0 || offset > size || size - offset < sizeof(struct timeline))
        return;
    mark_used(snapshot, offset, sizeof(struct timeline));
    for (int attempt = 0; attempt < tries(taking); attempt++) {
        if (recording_copy_timeline((struct timeline *)(snapshot->bytes + offset),
                (const struct timeline *)(taking->file.bytes + offset)))
            return;
        sched_yield();
    }
    snapshot->timeline_torn = true;
}

struct stretch {
    uint64_t start, end;
};

static int compare_stretches(const void *a, const void *b) {
    uint64_t x = ((const struct stretch *)a)->start, y = ((const struct stretch *)b)->start;
    return (x > y) - (x < y);
}

/* Copies all that no other function has copied: frames, texts, the tables of names, heaps and code, and what only
 * the recorder uses. */
static void copy_rest(struct taking *taking) {
    struct snapshot *snapshot = taking->snapshot;
    const struct checked_table *tables[] = {
        &snapshot->threads, &snapshot->stacks, &snapshot->modules, &snapshot->live};
    struct stretch taken[4 * SEGMENTS_MAX + 1];
    size_t count = 0;
    for (size_t t = 0; t < 4; t++)
        for (uint32_t k = 0; k < tables[t]->segment_count; k++) {
            const struct checked_segment *segment = &tables[t]->segment[k];
            uint64_t end = segment->offset + segment->entries * tables[t]->entry_size;
            if (segment->entries) taken[count++] = (struct stretch){segment->offset, end};
        }
    uint64_t timeline = snapshot_header(snapshot)->timeline;
    if (snapshot_has(snapshot, timeline, sizeof(struct timeline)) && timeline % 8 == 0)
        taken[count++] = (struct stretch){timeline, timeline + sizeof(struct timeline)};
    qsort(taken, count, sizeof taken[0], compare_stretches);

    uint64_t at = HEADER_SPAN;
    for (size_t i = 0; i < count; i++) {
        copy_plain(taking, at, taken[i].start);
        if (taken[i].end > at) at = taken[i].end;
    }
    copy_plain(taking, at, snapshot->size);
}

static void check_tables(struct snapshot *snapshot, const struct recording_header *header, uint64_t size) {
    snapshot_check_table(&snapshot->threads, &header->threads, sizeof(struct thread_record), size);
    snapshot_check_table(&snapshot->stacks, &header->stacks, sizeof(struct stack_record), size);
    snapshot_check_table(&snapshot->modules, &header->modules, sizeof(struct module_record), size);
    snapshot_check_table(&snapshot->live, &header->live, sizeof(struct live_entry), size);
    snapshot_check_table(&snapshot->names, &header->names, sizeof(struct name_record), size);
    snapshot_check_table(&snapshot->heaps, &header->heaps, sizeof(struct heap_record), size);
    snapshot_check_table(&snapshot->codes, &header->code_objects, sizeof(struct code_record), size);
}

/* Copies the header as it is now, and checks the tables against the size that the file has now. */
static void copy_header(struct taking *taking) {
    struct snapshot *snapshot = taking->snapshot;
    struct recording_header *header = snapshot_header(snapshot);
    copy_words(taking, 0, HEADER_SPAN);
    uint64_t size = mapped_file_size(&taking->file);
    if (header->arena_used > size) taking->was_short = true;
    check_tables(snapshot, header, size);
}

/* Finds out how much of the file is in use, and checks the tables against that. */
static void measure(struct taking *taking) {
    struct snapshot *snapshot = taking->snapshot;
    const struct recording_header *header = snapshot_header(snapshot);
    uint64_t used = header->arena_used, size = mapped_file_size(&taking->file);
    snapshot->bytes_in_use = used;
    snapshot->size = used >= HEADER_SPAN && used < size ? used : size;
    check_tables(snapshot, header, snapshot->size);
}

static void copy_all(struct taking *taking) {
    struct snapshot *snapshot = taking->snapshot;
    struct recording_header *header = snapshot_header(snapshot);

    copy_header(taking);
    copy_table(taking, &snapshot->live, copy_live_entry);
    struct table live = header->live;

    /* Once more: a stack that a live entry names may be newer than the first copy of the header. */
    copy_header(taking);
    copy_table(taking, &snapshot->stacks, copy_stack);
    copy_table(taking, &snapshot->modules, copy_module);
    copy_table(taking, &snapshot->threads, copy_thread);
    copy_timeline(taking);

    /* And frames and texts that records name may lie beyond what was in use when the header was copied. */
    const struct recording_header *source = (const struct recording_header *)taking->file.bytes;
    header->arena_used = atomic_load_explicit(&source->arena_used, memory_order_acquire);
    header->live = live;
    measure(taking);
    copy_rest(taking);
}

/* Uses the mapped file of a program that has ended. The mapping is private: the first write to the header's page
 * makes that page a copy, which nobody else can change any more. */
static void take_in_place(struct taking *taking) {
    struct snapshot *snapshot = taking->snapshot;
    struct recording_header *header = snapshot_header(snapshot);
    // cppcheck-suppress selfAssignment ; the write is the purpose
    *(volatile uint32_t *)&header->flags = *(volatile uint32_t *)&header->flags;
    measure(taking);
    uint64_t start = 0;
    for (uint64_t stop; next_stretch(taking, &start, &stop, snapshot->size); start = stop)
        mark_used(snapshot, start, stop - start);
    if (!snapshot_has(snapshot, header->timeline, sizeof(struct timeline)) || header->timeline % 8 != 0)
        return;
    const struct timeline *timeline = (const struct timeline *)(snapshot->bytes + header->timeline);
    snapshot->timeline_torn = timeline->sequence % 2 != 0;
}

/* Address space for the copy, which gets pages as it is written. NULL: there is none. */
static uint8_t *copy_memory(const struct taking *taking) {
    void *bytes = mmap(
        NULL, taking->file.span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED) return NULL;
    if (!taking->has_holes)
        madvise(bytes, taking->file.span, MADV_HUGEPAGE); /* nearly all of it will be used */
    return bytes;
}

/* Maps the file, and makes room for a copy unless it is used in place. Returns 0 or a negative errno. */
static int make_room(struct taking *taking, int descriptor, uint64_t span, bool in_place) {
    struct snapshot *snapshot = taking->snapshot;
    int r = mapped_file_open(descriptor, span, in_place, &taking->file);
    if (r < 0) return r;
    snapshot->span = taking->file.span;
    snapshot->parts =
        memory_try_allocate((snapshot->span / SNAPSHOT_PART_SIZE / 64 + 1) * sizeof *snapshot->parts);
    snapshot->bytes = in_place ? taking->file.bytes : copy_memory(taking);
    if (in_place) snapshot->in_place = taking->file;
    if (snapshot->bytes && snapshot->parts) return 0;
    if (!in_place) mapped_file_close(&taking->file);
    snapshot_free(snapshot);
    return -ENOMEM;
}

/* The longest run that is believed: 2^62 ns, 146 years. Differences of such times fit into signed numbers. */
#define TIME_MOST (UINT64_C(1) << 62)

static uint64_t last_event(const struct snapshot *snapshot) {
    uint64_t last = snapshot_header(snapshot)->last_event;
    struct table_cursor cursor = {0};
    for (const struct thread_record *thread; (thread = snapshot_next(snapshot, &snapshot->threads, &cursor));)
        if (thread->last_event > last) last = thread->last_event;
    return last < TIME_MOST ? last : TIME_MOST;
}

static void describe_process(
    struct snapshot *snapshot, const struct recording_file *file, const struct stat *status) {
    snapshot->owner = file->is_archived ? file->owner : status->st_uid;
    const struct recording_header *header = snapshot_header(snapshot);
    snapshot->state = header->flags & RECORDING_FINISHED ? PROCESS_FINISHED
                      : snapshot->writer                 ? PROCESS_RUNNING
                                                         : PROCESS_KILLED;
    snapshot->elapsed = snapshot->last_event = last_event(snapshot);
    if (snapshot->state == PROCESS_RUNNING) {
        uint64_t now = nanoseconds_now(CLOCK_MONOTONIC);
        if (now > header->start_monotonic) snapshot->elapsed = now - header->start_monotonic;
        if (!file->skip_resident_size)
            snapshot->recorder_bytes = writer_process_resident(snapshot->writer, status);
    }
    uint64_t on_disk = (uint64_t)status->st_blocks * 512;
    if (snapshot->recorder_bytes == 0)
        snapshot->recorder_bytes = on_disk < snapshot->size ? on_disk : snapshot->size;
    snapshot->recorder_bytes += header->private_bytes;
    snapshot->file_bytes = (uint64_t)status->st_size;
    if (file->is_archived) {
        snapshot->recorder_bytes = file->recorder_bytes;
        snapshot->file_bytes = file->file_bytes;
    }
}

int snapshot_take(const struct recording_file *file, struct snapshot *ret_snapshot, struct problem *problem) {
    struct stat status;
    struct recording_header header;
    ssize_t length = pread(file->descriptor, &header, sizeof header, 0);
    if (length < 0 || fstat(file->descriptor, &status) < 0) {
        int error = errno;
        return problem_set(problem, problem_kind_of_errno(error), problem_remedy_of_errno(error),
            "cannot read '%s': %s", file->path, strerror(error));
    }
    int r = header_check(&header, length, file->path, problem);
    if (r < 0) return r;
    if ((uint64_t)status.st_size < HEADER_SPAN)
        return problem_set(problem, PROBLEM_DAMAGED, "get a whole copy of the file, or record again",
            "'%s' is cut off after its header: none of its tables is left", file->path);

    struct snapshot snapshot = {.writer = file->writer};
    if (!snapshot.writer && !file->is_archived && !(header.flags & RECORDING_FINISHED)) {
        int writer = writer_process_find(header.writer ? header.writer : header.pid, &status);
        if (writer < 0)
            snapshot.writer_is_hidden = true;
        else
            snapshot.writer = writer;
    }
    uint64_t size = (uint64_t)status.st_size;
    struct taking taking = {.snapshot = &snapshot, .has_holes = (uint64_t)status.st_blocks * 512 < size / 2};
    bool in_place = !snapshot.writer && !snapshot.writer_is_hidden && !file->will_be_written;
    /* A file that is being written may grow during the copy, so the mapping is larger than the file. */
    uint64_t grown = 2 * size + (UINT64_C(256) << 20);
    r = snapshot.writer ? make_room(&taking, file->descriptor, grown, false) : -ENOMEM;
    if (r < 0) r = make_room(&taking, file->descriptor, size, in_place);
    if (r < 0)
        return problem_set(problem, PROBLEM_FAILURE,
            "free some memory, or read it on a machine that has more", "cannot map '%s' (%llu bytes): %s",
            file->path, (unsigned long long)size, strerror(-r));
    if (in_place) {
        take_in_place(&taking);
    } else {
        copy_all(&taking);
        snapshot.pages_lost = mapped_file_close(&taking.file);
        if (taking.was_short && snapshot.bytes_in_use <= snapshot.size) snapshot.pages_lost = true;
    }
    describe_process(&snapshot, file, &status);
    *ret_snapshot = snapshot;
    return 0;
}
