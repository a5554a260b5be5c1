/* Lines of source files for the HTML page: a few around each line that a frame is at. */
#ifndef MALLOSCOPE_FORMAT_PAGE_SOURCE_H
#define MALLOSCOPE_FORMAT_PAGE_SOURCE_H

#include "format/json.h"

#include <stddef.h>
#include <stdint.h>

struct source_place {
    uint32_t file; /* index into `paths` */
    int line;
};

struct source_request {
    const char *const *paths;    /* of source files, as debug info has them */
    struct source_place *places; /* page_source_write sorts them */
    size_t place_count;
    const char *sysroot; /* folder below which the paths are looked for first, or NULL */
    int64_t user;        /* who has named the files: they are opened with that user's rights (open_as) */
    uint64_t
        start_realtime; /* ns since the epoch: a newer file may not be the one that was compiled; 0: not known */
};

/* Writes an array of [file, whether it is newer than the recording, line, [text...], line, [text...], ...]. Files
 * that do not exist, or whose names are not those of source files, are left out. Returns how many files were left
 * out because all texts together would be too large. */
size_t page_source_write(struct json *json, struct source_request *request);

/* Whether a path is that of a source file, by the ending of its name. Paths in debug info may lead anywhere, and
 * nothing but source may get into a page that people share. */
bool page_source_is_source(const char *path);

#endif
