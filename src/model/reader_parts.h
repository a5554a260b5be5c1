/* A copy of a recording that holds only what a reader uses. The rest served the recorder: indices, indices that
 * were outgrown, hashes. These are random numbers that cannot be packed, and would be a third of an archive.
 *
 * Everything keeps its offset. What is left out is zero. */
#ifndef MALLOSCOPE_MODEL_READER_PARTS_H
#define MALLOSCOPE_MODEL_READER_PARTS_H

#include "model/snapshot.h"

#define READER_PARTS_PAGE 4096u

struct reader_parts {
    uint8_t *bytes;
    uint64_t size, span;
    uint64_t *pages; /* a bit for each page that holds anything */
};

/* Returns 0, or -ENOMEM if there is not as much address space as the recording is long. */
int reader_parts_make(const struct snapshot *snapshot, struct reader_parts *ret_parts);
void reader_parts_free(struct reader_parts *parts);

static inline bool reader_parts_has_page(const struct reader_parts *parts, uint64_t page) {
    return parts->pages[page / 64] >> (page % 64) & 1;
}

#endif
