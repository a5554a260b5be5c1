/* An archive: recordings and the names of their code addresses in one file, to be read on a machine that has
 * neither the programs nor their debug info.
 *
 *     head │ part │ part │ … │ end        part = its kind and sizes, then its bytes, packed
 *
 *     recording   the pages that are not zero, and where they lie
 *     names       what the frame words of all these recordings stand for (symbol/symbol_store.h)
 *     end         marks that the archive is whole; a file without it was cut off
 *
 * Parts of other kinds are skipped. An archive is untrusted, as a recording is: sizes are checked before memory is
 * reserved, packed bytes have checksums, and a recording that comes out is checked as any other. */
#ifndef MALLOSCOPE_MODEL_ARCHIVE_H
#define MALLOSCOPE_MODEL_ARCHIVE_H

#include "base/new_file.h"
#include "base/problem.h"
#include "model/recording_file.h"
#include "model/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARCHIVE_SUFFIX ".mscar"

/* ---- reading ---- */

/* Where a part is in the file, and its size when unpacked. */
struct archive_place {
    uint64_t offset, packed_size, size;
};

struct archive {
    int descriptor;
    const char *path; /* the caller's */
    struct archive_place *recordings;
    size_t recording_count;
    struct archive_place names; /* size 0: there are none */
    bool is_cut;                /* the end is missing */
};

/* Whether the file begins like an archive. */
bool archive_is_one(int descriptor);

/* Lists the parts of an archive. The descriptor stays the caller's. archive_close may be called after a failure
 * too. */
int archive_open(int descriptor, const char *path, struct archive *ret_archive, struct problem *problem);
void archive_close(struct archive *archive);

/* Unpacks a recording into a file in memory, which the caller closes with recording_file_close. */
int archive_take_recording(
    const struct archive *archive, size_t number, struct recording_file *ret_file, struct problem *problem);

/* Unpacks the names: `names.size` bytes, which the caller frees. */
int archive_take_names(const struct archive *archive, void **ret_names, struct problem *problem);

/* ---- writing ---- */

struct archive_writer {
    struct new_file file;
    size_t recording_count;
    int error; /* negative errno of the first failure, after which nothing more is written; 0: none */
};

int archive_writer_start(const char *path, bool replace, struct archive_writer *ret_writer);
/* Changes the snapshot to one that stands alone (snapshot_make_stand_alone). */
void archive_writer_add_recording(struct archive_writer *writer, struct snapshot *snapshot);
void archive_writer_add_names(struct archive_writer *writer, const void *names, size_t size);
/* Gives the file its name, unless something failed or `give_up` is true. Returns 0 or a negative errno. */
int archive_writer_end(struct archive_writer *writer, bool give_up);

#endif
