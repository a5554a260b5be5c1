/* Lines of source files for the HTML page: a few around each line that a frame names. */
#ifndef MALLOSCOPE_FORMAT_PAGE_SOURCE_H
#define MALLOSCOPE_FORMAT_PAGE_SOURCE_H

#include "format/json.h"

#include <stddef.h>
#include <stdint.h>

struct source_place {
    uint32_t file; /* by the caller's count */
    int line;
};

struct source_request {
    const char *const *paths;    /* by file, as in debug information */
    struct source_place *places; /* sorted by page_source_write */
    size_t place_count;
    const char *sysroot;     /* looked into first, or NULL */
    uint64_t start_realtime; /* ns: what is newer may not be what was recorded. 0 = not known */
};

/* Writes an array of [file, is newer than the recording, line, [text...], line, [text...], ...]. Files that
 * are not there, or are no source by their names, are left out. Returns how many files were left out because
 * all the text together would be too much. */
size_t page_source_write(struct json *json, struct source_request *request);

/* By the ending of its name. A path in debug information may lead anywhere; nothing but source is put into a
 * page that people share. */
bool page_source_is_source(const char *path);

#endif
