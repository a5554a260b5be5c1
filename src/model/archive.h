/* An archive: recordings and the names of their addresses in one file, to be read where the programs are not.
 *
 *     head │ part │ part │ … │ end        part = its kind and sizes, then its bytes, packed
 *
 *     recording   the pages that are not zero, and where they lie
 *     names       what the frames of all these recordings stand for (symbol/symbol_store.h)
 *     end         a file that does not end with this was cut off
 *
 * Parts of other kinds are passed over. An archive is untrusted input, as a recording is: sizes are checked
 * before anything is reserved, packed bytes have checksums, and what comes out is checked like a recording.
 */
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

/* Reading */

struct archive_place {
    uint64_t offset, packed_size, size;
};

struct archive {
    int descriptor;
    const char *path; /* the caller's */
    struct archive_place *recordings;
    size_t recording_count;
    struct archive_place names; /* size 0: none */
    bool is_cut;
};

/* Whether the file begins like an archive. */
bool archive_is_one(int descriptor);

/* Lists what is in it. The descriptor stays the caller's. On failure too, archive_close does no harm. */
int archive_open(int descriptor, const char *path, struct archive *ret_archive, struct problem *problem);
void archive_close(struct archive *archive);

/* Takes out a recording: a file in memory, closed by the caller with recording_file_close. */
int archive_take_recording(
    const struct archive *archive, size_t number, struct recording_file *ret_file, struct problem *problem);

/* Takes out the names: `size` of the place tells how many bytes, freed by the caller. */
int archive_take_names(const struct archive *archive, void **ret_names, struct problem *problem);

/* Writing */

struct archive_writer {
    struct new_file file;
    size_t recording_count;
    int error; /* negative errno of the first failure: then nothing more is written */
};

int archive_writer_start(const char *path, bool replace, struct archive_writer *ret_writer);
/* The snapshot is made to stand alone. */
void archive_writer_add_recording(struct archive_writer *writer, struct snapshot *snapshot);
void archive_writer_add_names(struct archive_writer *writer, const void *names, size_t size);
/* The file appears, unless something went wrong or `give_up`. Returns 0 or a negative errno. */
int archive_writer_end(struct archive_writer *writer, bool give_up);

#endif
