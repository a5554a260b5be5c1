/* Holding a given number of live samples.
 *
 * Waiting for N samples at 512 KiB would take N × 512 KiB of heap: 250 GiB for the largest figure of
 * interest. Instead this thread's countdown, whose address the recording names, is set to zero before each
 * block, so that the block is sampled by the very code that samples any other. */
#ifndef BENCH_HOLD_H
#define BENCH_HOLD_H

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "core/recording.h"

/* The recording mapped into this program, NULL without one. */
static inline const struct recording_header *find_recording(void) {
    char line[512];
    const void *found = NULL;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && !found && fgets(line, sizeof line, maps)) {
        unsigned long start, offset;
        if (!strstr(line, ".mscope") || sscanf(line, "%lx-%*x %*s %lx", &start, &offset) != 2) continue;
        if (offset == 0 && !memcmp((const void *)start, RECORDING_MAGIC, 8)) found = (const void *)start;
    }
    if (maps) fclose(maps);
    return found;
}

static inline const struct thread_record *find_thread(const struct recording_header *recording) {
    const struct table *threads = &recording->threads;
    uint64_t first = 0;
    for (unsigned k = 0; k < SEGMENTS_MAX && threads->segment[k]; k++) {
        uint64_t entries = (uint64_t)threads->first << k;
        const struct thread_record *record = (const void *)((const char *)recording + threads->segment[k]);
        for (uint64_t i = 0; i < entries && first + i < threads->count; i++)
            if (record[i].state == THREAD_RUNNING && record[i].tid == gettid()) return &record[i];
        first += entries;
    }
    return NULL;
}

/* Keeps `count` blocks for ever; gives back how many of them became samples: 0 without a recorder. In exact
 * mode the countdown is not looked at, and every block is one. */
static inline long hold_samples(unsigned long count, uint32_t smallest, uint32_t largest) {
    uint32_t sizes[SIZES];
    draw_sizes(sizes, smallest, largest, 2);
    free(malloc(1)); /* the thread's record exists after its first allocation */
    const struct recording_header *recording = find_recording();
    const struct thread_record *thread = recording ? find_thread(recording) : NULL;
    int64_t *countdown = thread ? (int64_t *)thread->countdown_address : NULL;
    uint64_t before = thread ? thread->samples : 0;
    for (unsigned long i = 0; i < count; i++) {
        if (countdown) *countdown = 0;
        touch(malloc(sizes[i % SIZES]));
    }
    return thread ? (long)(thread->samples - before) : 0;
}

#endif
