/* What a reader can reach of a recording: the rest only served the recorder while it wrote (indices, those
 * that were outgrown, hashes) and is random enough to take a third of an archive.
 *
 * Everything stays where it is; what is left out is zero. */
#ifndef MALLOSCOPE_MODEL_READER_PARTS_H
#define MALLOSCOPE_MODEL_READER_PARTS_H

#include "model/snapshot.h"

#define READER_PARTS_PAGE 4096u

struct reader_parts {
    uint8_t *bytes;
    uint64_t size, span;
    uint64_t *pages; /* a bit for each page that holds anything */
};

/* Returns 0 or -ENOMEM. */
int reader_parts_make(const struct snapshot *snapshot, struct reader_parts *ret_parts);
void reader_parts_free(struct reader_parts *parts);

static inline bool reader_parts_has_page(const struct reader_parts *parts, uint64_t page) {
    return parts->pages[page / 64] >> (page % 64) & 1;
}

#endif
