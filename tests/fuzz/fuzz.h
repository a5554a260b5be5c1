/* What the fuzzers share. Each is a program of libFuzzer (tests/fuzz/README.md): it calls
 * LLVMFuzzerTestOneInput with bytes that it makes up from the corpus, and ends with a report when one of the
 * sanitizers, or REQUIRE, finds fault. */
#ifndef MALLOSCOPE_TESTS_FUZZ_H
#define MALLOSCOPE_TESTS_FUZZ_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* What must hold, whatever the input. */
#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* The input, taken from its front. What is not there any more is zero. */
struct input {
    const uint8_t *bytes;
    size_t size;
};

static inline void input_take(struct input *input, void *target, size_t size) {
    size_t there = size < input->size ? size : input->size;
    memset(target, 0, size);
    if (there) memcpy(target, input->bytes, there);
    input->bytes += there;
    input->size -= there;
}

static inline uint64_t input_number(struct input *input, size_t size) {
    uint64_t number = 0;
    input_take(input, &number, size);
    return number;
}

/* A copy of a part in a block of its own, so that reading beyond it is noticed, with a zero behind it. */
static inline char *input_text(const uint8_t *bytes, size_t size) {
    char *text = malloc(size + 1);
    if (size) memcpy(text, bytes, size);
    text[size] = '\0';
    return text;
}

/* Replaces what a file holds. */
static inline void file_put(int file, const void *bytes, size_t size) {
    REQUIRE(ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0);
    REQUIRE(write(file, bytes, size) == (ssize_t)size);
}

#endif
