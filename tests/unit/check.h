/* A test says what must hold. CHECK goes on after a failure and counts it; main ends with `return
 * check_result();`. */
#ifndef MALLOSCOPE_TESTS_CHECK_H
#define MALLOSCOPE_TESTS_CHECK_H

#include <stdio.h>
#include <string.h>

static int check_failures, check_count;

#define CHECK(condition)                                                                                     \
    (check_count++, (condition)                                                                              \
                        ? 1                                                                                  \
                        : (check_failures++,                                                                 \
                              fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition), 0))

#define CHECK_EQUAL(got, expected)                                                                           \
    do {                                                                                                     \
        double got_ = (double)(got), expected_ = (double)(expected);                                         \
        check_count++;                                                                                       \
        if (got_ != expected_) {                                                                             \
            check_failures++;                                                                                \
            fprintf(stderr, "%s:%d: %s is %.17g, not %.17g\n", __FILE__, __LINE__, #got, got_, expected_);   \
        }                                                                                                    \
    } while (0)

#define CHECK_TEXT(got, expected)                                                                            \
    do {                                                                                                     \
        const char *got_ = (got), *expected_ = (expected);                                                   \
        check_count++;                                                                                       \
        if (!got_ || strcmp(got_, expected_) != 0) {                                                         \
            check_failures++;                                                                                \
            fprintf(stderr, "%s:%d: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__, #got,                   \
                got_ ? got_ : "(null)", expected_);                                                          \
        }                                                                                                    \
    } while (0)

/* How often a test does the same thing: on an emulated processor (cross/aarch64.ini) it takes far longer. */
#if defined(EMULATED)
#define REPEAT(times) ((times) / 10)
#else
#define REPEAT(times) (times)
#endif

static inline int check_result(void) {
    fprintf(stderr, "%d checks, %d failed\n", check_count, check_failures);
    return check_failures != 0;
}

#endif
