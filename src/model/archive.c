#include "model/archive.h"

#include "base/memory.h"
#include "base/packer.h"
#include "model/archive_format.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROWTH_SPARE (UINT64_C(1) << 20) /* any part may unpack to this much */
#define BUFFER_SIZE  (UINT64_C(1) << 20)

static const char ANOTHER_COPY[] = "get a whole copy of the file, or archive the recording again";

bool archive_is_one(int descriptor) {
    struct archive_head head;
    return pread(descriptor, &head, sizeof head, 0) == (ssize_t)sizeof head &&
           memcmp(head.magic, ARCHIVE_MAGIC, sizeof head.magic) == 0;
}

static int damaged(const struct archive *archive, const char *what, struct problem *problem) {
    return problem_set(
        problem, PROBLEM_DAMAGED, ANOTHER_COPY, "the archive '%s' is damaged: %s", archive->path, what);
}

static int out_of_memory(const struct archive *archive, struct problem *problem) {
    return problem_set(problem, PROBLEM_FAILURE, "free some memory and try again",
        "out of memory while reading the archive '%s'", archive->path);
}

static int failed(const struct archive *archive, int error, const char *what, struct problem *problem) {
    if (error == -EBADMSG) return damaged(archive, what, problem);
    if (error == -ENOMEM) return out_of_memory(archive, problem);
    return problem_set(problem, problem_kind_of_errno(-error), problem_remedy_of_errno(-error),
        "cannot read the archive '%s': %s", archive->path, strerror(-error));
}

static bool growth_is_sane(const struct part_head *head) {
    return head->size <= GROWTH_SPARE || (head->size - GROWTH_SPARE) / PACKED_GROWTH_MAX <= head->packed_size;
}

/* A few packed bytes may stand for very many. The machine needs memory for all of them, and for a copy. */
static int check_room(
    const struct archive *archive, const struct archive_place *place, struct problem *problem) {
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (place->size <= memory / 2) return 0;
    return problem_set(problem, PROBLEM_FAILURE, "read it on a machine that has more memory",
        "a part of the archive '%s' unpacks to %" PRIu64 " MiB, too many for the %" PRIu64
        " MiB of this machine",
        archive->path, place->size >> 20, memory >> 20);
}

static void add_recording(struct archive *archive, struct archive_place place) {
    archive->recordings = memory_reallocate_array(
        archive->recordings, archive->recording_count + 1, sizeof *archive->recordings);
    archive->recordings[archive->recording_count++] = place;
}

int archive_open(int descriptor, const char *path, struct archive *ret_archive, struct problem *problem) {
    struct archive *archive = ret_archive;
    *archive = (struct archive){.descriptor = descriptor, .path = path};
    struct archive_head head;
    off_t size = lseek(descriptor, 0, SEEK_END);
    if (size < 0 || pread(descriptor, &head, sizeof head, 0) != (ssize_t)sizeof head)
        return failed(archive, size < 0 ? -errno : -EIO, "", problem);
    if (head.version != ARCHIVE_VERSION)
        return problem_set(problem, PROBLEM_DAMAGED, "update malloscope to read it",
            "'%s' is an archive of version %u, and this is malloscope " MALLOSCOPE_VERSION
            ", which reads version %d",
            path, head.version, ARCHIVE_VERSION);
    for (uint64_t at = sizeof head;;) {
        struct part_head part;
        uint64_t left = (uint64_t)size - at;
        archive->is_cut =
            left < sizeof part || pread(descriptor, &part, sizeof part, (off_t)at) != (ssize_t)sizeof part;
        if (archive->is_cut) break;
        at += sizeof part;
        archive->is_cut = part.packed_size > (uint64_t)size - at;
        if (archive->is_cut || part.kind == PART_END) break;
        struct archive_place place = {at, part.packed_size, part.size};
        if (!growth_is_sane(&part))
            return damaged(archive, "a part of it claims to be far too large", problem);
        if (part.kind == PART_RECORDING) add_recording(archive, place);
        if (part.kind == PART_NAMES) archive->names = place;
        at += part.packed_size;
    }
    if (archive->recording_count == 0)
        return damaged(archive,
            archive->is_cut ? "it is cut off before the end of the first recording"
                            : "there is no recording in it",
            problem);
    return 0;
}

void archive_close(struct archive *archive) {
    free(archive->recordings);
    *archive = (struct archive){.descriptor = -1};
}

int archive_take_names(const struct archive *archive, void **ret_names, struct problem *problem) {
    const struct archive_place *place = &archive->names;
    if (check_room(archive, place, problem) < 0) return -(int)PROBLEM_FAILURE;
    void *names = memory_try_allocate(place->size);
    if (!names) return out_of_memory(archive, problem);
    struct unpacker *unpacker = unpacker_new(archive->descriptor, place->offset, place->packed_size);
    int r = unpacker_read(unpacker, names, place->size);
    int end = unpacker_end(unpacker);
    if (r == 0) r = end;
    if (r == 0)
        *ret_names = names;
    else
        free(names);
    return r < 0 ? failed(archive, r, "its names cannot be read", problem) : 0;
}

/* Whether the stretches lie within the recording, in order and without overlap, and hold as many bytes as the part
 * has left. */
static bool stretches_fit(const struct recording_head *head, const struct recording_stretch *stretches,
    const struct archive_place *place) {
    uint64_t end = 0, sum = sizeof *head + head->stretch_count * sizeof *stretches;
    for (uint64_t i = 0; i < head->stretch_count; i++) {
        const struct recording_stretch *stretch = &stretches[i];
        if (stretch->offset < end || stretch->offset > head->size || stretch->length == 0 ||
            stretch->length > head->size - stretch->offset)
            return false;
        end = stretch->offset + stretch->length;
        sum += stretch->length; /* cannot overflow: they do not overlap */
    }
    return sum == place->size;
}

static int write_at(int descriptor, const char *bytes, size_t size, uint64_t offset) {
    while (size) {
        ssize_t written = pwrite(descriptor, bytes, size, (off_t)offset);
        if (written < 0 && errno != EINTR) return -errno;
        if (written <= 0) continue;
        bytes += written;
        size -= (size_t)written;
        offset += (uint64_t)written;
    }
    return 0;
}

static int copy_stretches(
    struct unpacker *unpacker, const struct recording_stretch *stretches, uint64_t count, int descriptor) {
    char *buffer = memory_allocate(BUFFER_SIZE);
    int r = 0;
    for (uint64_t i = 0; r == 0 && i < count; i++)
        for (uint64_t done = 0; r == 0 && done < stretches[i].length;) {
            uint64_t left = stretches[i].length - done;
            size_t size = (size_t)(left < BUFFER_SIZE ? left : BUFFER_SIZE);
            r = unpacker_read(unpacker, buffer, size);
            if (r == 0) r = write_at(descriptor, buffer, size, stretches[i].offset + done);
            done += size;
        }
    free(buffer);
    return r;
}

static int unpack_recording(
    struct unpacker *unpacker, const struct archive_place *place, struct recording_file *file) {
    struct recording_head head;
    if (place->size < sizeof head) return -EBADMSG;
    int r = unpacker_read(unpacker, &head, sizeof head);
    if (r < 0) return r;
    if (head.size > LLONG_MAX ||
        head.stretch_count > (place->size - sizeof head) / sizeof(struct recording_stretch))
        return -EBADMSG;
    struct recording_stretch *stretches = memory_try_allocate(head.stretch_count * sizeof *stretches);
    if (!stretches) return -ENOMEM;
    r = unpacker_read(unpacker, stretches, head.stretch_count * sizeof *stretches);
    if (r == 0 && !stretches_fit(&head, stretches, place)) r = -EBADMSG;
    if (r == 0 && ftruncate(file->descriptor, (off_t)head.size) < 0)
        r = errno == EFBIG || errno == EINVAL ? -EBADMSG : -errno;
    if (r == 0) r = copy_stretches(unpacker, stretches, head.stretch_count, file->descriptor);
    free(stretches);
    file->file_bytes = head.file_bytes;
    file->recorder_bytes = head.recorder_bytes;
    return r;
}

int archive_take_recording(
    const struct archive *archive, size_t number, struct recording_file *ret_file, struct problem *problem) {
    const struct archive_place *place = &archive->recordings[number];
    if (check_room(archive, place, problem) < 0) return -(int)PROBLEM_FAILURE;
    struct stat status;
    if (fstat(archive->descriptor, &status) < 0) return failed(archive, -errno, "", problem);
    struct recording_file file = {.descriptor = memfd_create("recording", MFD_CLOEXEC),
        .path = archive->path,
        .is_archived = true,
        .owner = status.st_uid};
    if (file.descriptor < 0)
        return problem_set(problem, PROBLEM_FAILURE, "free some memory and try again",
            "cannot unpack the archive '%s': %s", archive->path, strerror(errno));
    struct unpacker *unpacker = unpacker_new(archive->descriptor, place->offset, place->packed_size);
    int r = unpack_recording(unpacker, place, &file);
    int end = unpacker_end(unpacker);
    if (r == 0) r = end;
    if (r == 0) {
        *ret_file = file;
        return 0;
    }
    close(file.descriptor);
    return failed(archive, r, "a recording in it cannot be read", problem);
}
