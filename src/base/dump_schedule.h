/* When a program writes dumps of itself, as people say it: "exit,10s,100M". */
#ifndef MALLOSCOPE_BASE_DUMP_SCHEDULE_H
#define MALLOSCOPE_BASE_DUMP_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dump_schedule {
    bool at_exit;
    uint64_t every_bytes;       /* allocated; 0 = not */
    uint64_t every_nanoseconds; /* likewise */
};

/* A list with commas: "exit"; a number of bytes (4096, 64K, 100M, 1G, 1T, which may end in B or iB); a time
 * (500ms, 10s, 5min, 1h). False if a word is none of these, which `*ret_bad` and `*ret_bad_length` then name.
 */
bool dump_schedule_read(
    const char *text, struct dump_schedule *ret_when, const char **ret_bad, size_t *ret_bad_length);

/* The number of a signal: "USR2", "SIGUSR2" or "12". 0 if there is none of that name; -1 if it is one that no
 * program can go on after, or that cannot be caught. */
int dump_schedule_read_signal(const char *text);

#endif
