/* Programs that recorded ones have started, or have become by exec, and that are not recorded: those of several
 * recordings, added up. */
#ifndef MALLOSCOPE_MODEL_UNRECORDED_LIST_H
#define MALLOSCOPE_MODEL_UNRECORDED_LIST_H

#include "core/recording.h"

#include <stddef.h>
#include <stdint.h>

struct unrecorded {
    char *path;
    enum unrecorded_reason reason; /* at least 1, and below UNRECORDED_REASONS */
    uint64_t count;                /* how often it was started */
};

struct unrecorded_list {
    struct unrecorded *list; /* the most frequent first, once it is sorted */
    size_t count;
    uint64_t others; /* starts of programs for which a recording's table had no room */
};

/* Adds the table of a recording, which is not trusted. */
void unrecorded_list_add(struct unrecorded_list *list, const struct unrecorded_programs *table);
void unrecorded_list_sort(struct unrecorded_list *list);
void unrecorded_list_free(struct unrecorded_list *list);

/* The number of starts. */
uint64_t unrecorded_list_total(const struct unrecorded_list *list);

/* A word for scripts: "static". */
const char *unrecorded_list_reason_name(enum unrecorded_reason reason);

#endif
