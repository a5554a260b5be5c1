#include "format/number_set.h"

#include "base/memory.h"

#include <stdlib.h>

void number_set_add(struct number_set *set, size_t number) {
    if (number >= set->size) {
        size_t size = 2 * number + 64;
        set->has = memory_reallocate(set->has, size * sizeof *set->has);
        for (size_t i = set->size; i < size; i++) set->has[i] = false;
        set->size = size;
    }
    set->has[number] = true;
}

bool number_set_has(const struct number_set *set, size_t number) {
    return number < set->size && set->has[number];
}

void number_set_free(struct number_set *set) {
    free(set->has);
    *set = (struct number_set){0};
}
