/* Numbers as people read and write them: "12.3 MiB", "1,234", "1.25 s", "512K". */
#ifndef MALLOSCOPE_CLI_TERMINAL_UNITS_H
#define MALLOSCOPE_CLI_TERMINAL_UNITS_H

#include <stdbool.h>
#include <stdint.h>

/* Returned by value, so that `printf("%s", units_bytes(n).text)` needs no buffer. */
struct unit_text {
    char text[32];
};

struct unit_text units_bytes(double bytes);                     /* "12.3 MiB" */
struct unit_text units_bytes_short(double bytes);               /* "12.3M" */
struct unit_text units_count(double count);                     /* "1,234", from a million on "1.23 M" */
struct unit_text units_counted(double count, const char *noun); /* "1 allocation", "1,234 allocations" */
struct unit_text units_percent(double share);                   /* 0.12: "12%"; also "<1%", ">999%" */
struct unit_text units_seconds(double seconds); /* "120 µs", "1.25 s", "2 min 05 s", "3 h 20 min" */

/* These return false, and leave the result alone, if the text is not a number of that kind, or too large.
 *
 * A number of bytes: digits, then nothing, B, or one of K, M, G and T (powers of 1024), which may be followed by B
 * or iB: "4096", "512K", "1GiB". */
bool units_parse_size(const char *text, uint64_t *ret_bytes);
bool units_parse_count(const char *text, uint64_t *ret_count);

/* A time: a number, then nothing or s, ms, m, min or h. It must be more than 0 and at most 366 days. */
bool units_parse_seconds(const char *text, double *ret_seconds);

#endif
