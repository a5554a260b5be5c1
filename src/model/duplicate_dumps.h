/* Copies of one recording among others: dumps that a program made of itself, beside its recording. */
#ifndef MALLOSCOPE_MODEL_DUPLICATE_DUMPS_H
#define MALLOSCOPE_MODEL_DUPLICATE_DUMPS_H

#include <stddef.h>

/* Of several recordings of one process only the latest stays. The others' paths are freed; returns how many
 * are left. What cannot be read stays, to be complained of by who reads it. */
size_t duplicate_dumps_leave_out(char **paths, size_t count);

#endif
