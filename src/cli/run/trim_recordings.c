#include "cli/run/trim_recordings.h"

#include "base/memory.h"
#include "cli/run/recordings_in_use.h"
#include "core/recording_empty.h"
#include "model/snapshot.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A recording's file, opened to be trimmed. */
struct leftover {
    int file;
    uint64_t size; /* of the file */
    uint64_t used; /* where the space that is used ends, in whole pages */
    bool may_be_empty;
};

/* False: it is not a file that this version writes. */
static bool open_leftover(const char *path, struct leftover *ret_leftover) {
    int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    struct recording_header header;
    if (file < 0) return false;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
        pread(file, &header, sizeof header, 0) == (ssize_t)sizeof header &&
        memcmp(header.magic, RECORDING_MAGIC, sizeof header.magic) == 0 &&
        header.version == RECORDING_VERSION && header.arena_used >= HEADER_SPAN &&
        header.arena_used <= (uint64_t)status.st_size) {
        uint64_t used = (header.arena_used + PAGE_SIZE_MIN - 1) / PAGE_SIZE_MIN * PAGE_SIZE_MIN;
        *ret_leftover =
            (struct leftover){file, (uint64_t)status.st_size, used, recording_may_be_empty(&header)};
        return true;
    }
    close(file);
    return false;
}

static bool wants_trimming(const char *path, bool is_child) {
    struct leftover leftover;
    if (!open_leftover(path, &leftover)) return false;
    close(leftover.file);
    return leftover.size > leftover.used || (is_child && leftover.may_be_empty);
}

static bool names_unrecorded(const uint8_t *bytes, uint64_t size) {
    uint64_t offset = ((const struct recording_header *)bytes)->unrecorded;
    if (offset < HEADER_SPAN) return false;
    const uint64_t length = sizeof(struct unrecorded_programs);
    if (offset % 8 != 0 || size < length || offset > size - length) return true; /* damaged: it stays */
    return recording_names_unrecorded((const struct unrecorded_programs *)(bytes + offset));
}

static bool has_events(const uint8_t *bytes, uint64_t size) {
    const struct recording_header *header = (const struct recording_header *)bytes;
    struct checked_table threads, stacks;
    snapshot_check_table(&threads, &header->threads, sizeof(struct thread_record), size);
    snapshot_check_table(&stacks, &header->stacks, sizeof(struct stack_record), size);
    bool found =
        threads.damaged || threads.lost || stacks.damaged || stacks.lost || names_unrecorded(bytes, size);
    for (uint32_t k = 0; k < threads.segment_count && !found; k++) {
        const struct thread_record *thread =
            (const struct thread_record *)(bytes + threads.segment[k].offset);
        for (uint64_t i = 0; i < threads.segment[k].entries; i++)
            found = found || recording_thread_has_events(&thread[i]);
    }
    for (uint32_t k = 0; k < stacks.segment_count && !found; k++) {
        const struct stack_record *stack = (const struct stack_record *)(bytes + stacks.segment[k].offset);
        for (uint64_t i = 0; i < stacks.segment[k].entries; i++)
            found = found || recording_stack_has_frees(&stack[i]);
    }
    return found;
}

static bool is_empty(const struct leftover *leftover) {
    uint64_t size = leftover->used < leftover->size ? leftover->used : leftover->size;
    void *bytes =
        leftover->may_be_empty ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, leftover->file, 0) : MAP_FAILED;
    if (bytes == MAP_FAILED) return false;
    bool empty = !has_events(bytes, size);
    munmap(bytes, size);
    return empty;
}

/* Returns whether the recording was removed. Where the system refuses, the file stays as it is: it can be read all the
 * same. */
static bool trim(const char *path, bool is_child) {
    struct leftover leftover;
    if (!open_leftover(path, &leftover)) return false;
    bool is_removed = is_child && is_empty(&leftover) && unlink(path) == 0;
    if (!is_removed && leftover.size > leftover.used && ftruncate(leftover.file, (off_t)leftover.used) < 0)
        is_removed = false;
    close(leftover.file);
    return is_removed;
}

static void trim_unused(struct run_recordings *recordings, const bool *in_use) {
    size_t kept = 0;
    if (recordings->main && !in_use[recordings->child_count]) trim(recordings->main, false);
    for (size_t i = 0; i < recordings->child_count; i++) {
        if (!in_use[i] && trim(recordings->children[i], true))
            free(recordings->children[i]);
        else
            recordings->children[kept++] = recordings->children[i];
    }
    recordings->child_count = kept;
}

void trim_recordings(struct run_recordings *recordings) {
    size_t count = recordings->child_count;
    bool wanted = recordings->main && wants_trimming(recordings->main, false);
    for (size_t i = 0; i < count && !wanted; i++) wanted = wants_trimming(recordings->children[i], true);
    if (!wanted) return;
    char **paths = memory_allocate((count + 1) * sizeof *paths);
    bool *in_use = memory_allocate((count + 1) * sizeof *in_use);
    memcpy(paths, recordings->children, count * sizeof *paths);
    paths[count] = recordings->main;
    recordings_in_use(paths, count + (recordings->main != NULL), in_use);
    trim_unused(recordings, in_use);
    free(paths);
    free(in_use);
}
