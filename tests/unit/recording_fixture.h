/* A recording in a temporary file, for tests of the tables. */
#ifndef MALLOSCOPE_TESTS_RECORDING_FIXTURE_H
#define MALLOSCOPE_TESTS_RECORDING_FIXTURE_H

#include "core/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline struct recording *fixture_recording(uint64_t size_max) {
    static int number;
    struct recording *recording = calloc(1, sizeof *recording);
    char path[128];
    const char *folder = getenv("TMPDIR");
    snprintf(
        path, sizeof path, "%s/malloscope-test-%d-%d.mscope", folder ? folder : "/tmp", getpid(), number++);
    int r = arena_create(recording, path, false, 1 << 20, size_max);
    if (r < 0) {
        fprintf(stderr, "cannot create %s: %s\n", path, strerror(-r));
        exit(1);
    }
    return recording;
}

static inline void fixture_free(struct recording *recording) {
    unlink(recording->path);
    arena_unmap(recording);
    free(recording);
}

#endif
