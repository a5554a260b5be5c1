#include "model/unrecorded_list.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define PROGRAMS_MOST 4096 /* of all recordings together; more are counted as others */

static void add(struct unrecorded_list *list, const char *path, size_t length, enum unrecorded_reason reason,
    uint64_t count) {
    for (size_t i = 0; i < list->count; i++)
        if (list->list[i].reason == reason && strncmp(list->list[i].path, path, length) == 0 &&
            !list->list[i].path[length]) {
            list->list[i].count += count;
            return;
        }
    if (list->count == PROGRAMS_MOST) {
        list->others += count;
        return;
    }
    list->list = memory_reallocate_array(list->list, list->count + 1, sizeof *list->list);
    list->list[list->count++] = (struct unrecorded){memory_copy_text_part(path, length), reason, count};
}

void unrecorded_list_add(struct unrecorded_list *list, const struct unrecorded_programs *table) {
    for (size_t i = 0; i < UNRECORDED_MOST; i++) {
        const struct unrecorded_program *program = &table->program[i];
        uint64_t reason = program->reason, count = program->count;
        /* 0: the place is free, or the program is just being noted, or its start has failed. */
        if (!program->key || !reason || reason >= UNRECORDED_REASONS || !count) continue;
        size_t length = strnlen(program->path, sizeof program->path);
        add(list, program->path, length, (enum unrecorded_reason)reason, count);
    }
    list->others += table->others;
}

static int compare(const void *a, const void *b) {
    const struct unrecorded *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return strcmp(x->path, y->path);
}

void unrecorded_list_sort(struct unrecorded_list *list) {
    if (list->count) qsort(list->list, list->count, sizeof *list->list, compare);
}

void unrecorded_list_free(struct unrecorded_list *list) {
    for (size_t i = 0; i < list->count; i++) free(list->list[i].path);
    free(list->list);
    *list = (struct unrecorded_list){0};
}

uint64_t unrecorded_list_total(const struct unrecorded_list *list) {
    uint64_t total = list->others;
    for (size_t i = 0; i < list->count; i++) total += list->list[i].count;
    return total;
}

const char *unrecorded_list_reason_name(enum unrecorded_reason reason) {
    static const char *const names[UNRECORDED_REASONS] = {
        [UNRECORDED_STATIC] = "static",
        [UNRECORDED_OTHER_LIBC] = "other_libc",
        [UNRECORDED_MACHINE] = "machine",
        [UNRECORDED_SANITIZER] = "sanitizer",
        [UNRECORDED_OWN_MALLOC] = "own_malloc",
        [UNRECORDED_RIGHTS] = "rights",
        [UNRECORDED_UNREACHABLE] = "unreachable",
        [UNRECORDED_ENVIRONMENT] = "environment",
        [UNRECORDED_NO_FOLLOW] = "no_follow",
        [UNRECORDED_NAMESPACE] = "namespace",
    };
    return reason < UNRECORDED_REASONS && names[reason] ? names[reason] : "none";
}
