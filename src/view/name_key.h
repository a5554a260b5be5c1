/* Names as keys: hashed, compared and sorted. A name may be NULL, which differs from every text. */
#ifndef MALLOSCOPE_VIEW_NAME_KEY_H
#define MALLOSCOPE_VIEW_NAME_KEY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define NAME_KEY_START UINT64_C(0xcbf29ce484222325)

/* Continues `hash`, which is NAME_KEY_START at first, so that several names make one key. */
static inline uint64_t name_key_hash(uint64_t hash, const char *name) {
    for (; name && *name; name++) hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return hash * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static inline bool name_key_equal(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* As strcmp; NULL sorts as the empty text. */
static inline int name_key_compare(const char *a, const char *b) {
    return strcmp(a ? a : "", b ? b : "");
}

#endif
