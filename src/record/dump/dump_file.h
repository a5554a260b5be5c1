/* The file of a dump: it appears whole or not at all, since it is written under another name in the same
 * folder and renamed. Nothing here allocates, takes a lock or touches errno; it may run in a signal handler,
 * also on a small stack. */
#ifndef MALLOSCOPE_RECORD_DUMP_DUMP_FILE_H
#define MALLOSCOPE_RECORD_DUMP_DUMP_FILE_H

#include "core/arena.h"

#include <stddef.h>
#include <stdint.h>

#define DUMP_BUFFER 65536u

/* All that a dump needs in memory; dump_file_new maps it. */
struct dump_file {
    int descriptor;
    uint64_t size_limit; /* RLIMIT_FSIZE: to go over it would raise a signal in the program */
    char path[RECORDING_PATH_MAX];
    char temporary[RECORDING_PATH_MAX + 64];

    /* Text is gathered before it is written. */
    uint64_t written;
    size_t filled;
    int error; /* the first that met the text, a negative errno */
    _Alignas(64) uint8_t buffer[DUMP_BUFFER];
};

/* NULL if there is no memory. */
struct dump_file *dump_file_new(void);
void dump_file_free(struct dump_file *file);

/* Begins the file `file->path`, which must not exist yet. These return 0 or a negative errno. */
int dump_file_start(struct dump_file *file);
/* Gives it its name, unless `error` says that it failed to be written. Returns that, or what goes wrong here.
 */
int dump_file_end(struct dump_file *file, int error);

int dump_file_put(struct dump_file *file, uint64_t offset, const void *bytes, size_t size);
int dump_file_set_size(struct dump_file *file, uint64_t size);

/* One after the other, from the beginning of the file on; dump_text_end says what came of it. */
void dump_text(struct dump_file *file, const char *text);
void dump_text_bytes(struct dump_file *file, const void *bytes, size_t size);
void dump_text_decimal(struct dump_file *file, uint64_t number);
void dump_text_hex(struct dump_file *file, uint64_t number, int digits_least);
int dump_text_end(struct dump_file *file);

/* Memory without an allocator. NULL if there is none. */
void *dump_map(size_t size);
void dump_unmap(void *memory, size_t size);

#endif
