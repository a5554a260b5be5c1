/* A set of numbers, for things that are numbered from 0. */
#ifndef MALLOSCOPE_FORMAT_NUMBER_SET_H
#define MALLOSCOPE_FORMAT_NUMBER_SET_H

#include <stdbool.h>
#include <stddef.h>

/* A zeroed struct is an empty set. */
struct number_set {
    bool *has;
    size_t size; /* no number in the set is this large */
};

void number_set_add(struct number_set *set, size_t number);
bool number_set_has(const struct number_set *set, size_t number);
void number_set_free(struct number_set *set);

#endif
