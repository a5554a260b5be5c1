#include "base/memory.h"
#include "base/packer.h"
#include "model/archive.h"
#include "model/archive_format.h"
#include "model/reader_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static void note_error(struct archive_writer *writer, int error) {
    if (error < 0 && writer->error == 0) writer->error = error;
}

static int write_plain(int descriptor, const void *bytes, size_t size) {
    for (const char *at = bytes, *end = at + size; at < end;) {
        ssize_t written = write(descriptor, at, (size_t)(end - at));
        if (written < 0 && errno != EINTR) return -errno;
        if (written > 0) at += written;
    }
    return 0;
}

int archive_writer_start(const char *path, bool replace, struct archive_writer *ret_writer) {
    struct archive_writer writer = {0};
    int r = new_file_start(path, replace, &writer.file);
    if (r < 0) return r;
    struct archive_head head = {.magic = ARCHIVE_MAGIC, .version = ARCHIVE_VERSION};
    note_error(&writer, write_plain(writer.file.descriptor, &head, sizeof head));
    *ret_writer = writer;
    return 0;
}

/* A part that is being written. Its head holds its sizes, which are known at its end: room is left for the head,
 * and it is written last. */
struct part {
    off_t start;
    struct packer *packer;
    uint64_t size;
};

static struct part part_start(struct archive_writer *writer) {
    struct part part = {.start = lseek(writer->file.descriptor, 0, SEEK_CUR)};
    struct part_head head = {0};
    if (part.start < 0) note_error(writer, -errno);
    note_error(writer, write_plain(writer->file.descriptor, &head, sizeof head));
    part.packer = packer_new(writer->file.descriptor, PACKED_SMALL);
    return part;
}

static void part_add(struct archive_writer *writer, struct part *part, const void *bytes, size_t size) {
    if (writer->error == 0) note_error(writer, packer_write(part->packer, bytes, size));
    part->size += size;
}

static void part_end(struct archive_writer *writer, struct part *part, enum part_kind kind) {
    struct part_head head = {.kind = kind, .size = part->size};
    note_error(writer, packer_end(part->packer, &head.packed_size));
    if (writer->error == 0 &&
        pwrite(writer->file.descriptor, &head, sizeof head, part->start) != (ssize_t)sizeof head)
        note_error(writer, -EIO);
}

/* Lists the pages that hold anything. Neighbours become one stretch. */
static struct recording_stretch *list_stretches(const struct reader_parts *parts, uint64_t *ret_count) {
    struct recording_stretch *list = NULL;
    uint64_t count = 0, room = 0;
    for (uint64_t at = 0; at < parts->size; at += READER_PARTS_PAGE) {
        uint64_t length = parts->size - at < READER_PARTS_PAGE ? parts->size - at : READER_PARTS_PAGE;
        if (!reader_parts_has_page(parts, at / READER_PARTS_PAGE)) continue;
        if (count && list[count - 1].offset + list[count - 1].length == at) {
            list[count - 1].length += length;
            continue;
        }
        if (count == room) {
            room = 2 * room + 64;
            list = memory_reallocate_array(list, room, sizeof *list);
        }
        list[count++] = (struct recording_stretch){at, length};
    }
    *ret_count = count;
    return list;
}

static void add_parts(
    struct archive_writer *writer, struct recording_head *head, const struct reader_parts *parts) {
    struct recording_stretch *stretches = list_stretches(parts, &head->stretch_count);
    struct part part = part_start(writer);
    part_add(writer, &part, head, sizeof *head);
    part_add(writer, &part, stretches, head->stretch_count * sizeof *stretches);
    for (uint64_t i = 0; i < head->stretch_count; i++)
        part_add(writer, &part, parts->bytes + stretches[i].offset, stretches[i].length);
    part_end(writer, &part, PART_RECORDING);
    free(stretches);
}

void archive_writer_add_recording(struct archive_writer *writer, struct snapshot *snapshot) {
    struct reader_parts parts;
    snapshot_make_stand_alone(snapshot);
    if (writer->error == 0) note_error(writer, reader_parts_make(snapshot, &parts));
    if (writer->error < 0) return;
    struct recording_head head = {.size = snapshot->size,
        .file_bytes = snapshot->file_bytes,
        .recorder_bytes = snapshot->recorder_bytes};
    add_parts(writer, &head, &parts);
    reader_parts_free(&parts);
    writer->recording_count++;
}

void archive_writer_add_names(struct archive_writer *writer, const void *names, size_t size) {
    if (writer->error < 0) return;
    struct part part = part_start(writer);
    part_add(writer, &part, names, size);
    part_end(writer, &part, PART_NAMES);
}

int archive_writer_end(struct archive_writer *writer, bool give_up) {
    struct part_head end = {.kind = PART_END};
    if (writer->error == 0) note_error(writer, write_plain(writer->file.descriptor, &end, sizeof end));
    if (give_up) note_error(writer, -ECANCELED);
    return new_file_end(&writer->file, writer->error);
}
