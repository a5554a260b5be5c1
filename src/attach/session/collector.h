/* The collector: turns events that are told about another process into a recording, by the same tables as the
 * recorder inside a program. Every view and format then works on it, also while it is written.
 *
 * Blocks are told by numbers that are never used twice, and found again by them. A collector is used by one
 * thread. */
#ifndef MALLOSCOPE_ATTACH_SESSION_COLLECTOR_H
#define MALLOSCOPE_ATTACH_SESSION_COLLECTOR_H

#include "base/problem.h"
#include "core/recording.h"

#include <stdbool.h>
#include <stdint.h>

struct collector;

struct collector_options {
    const char *path;
    bool replace;
    int pid;
    uint64_t rate;
    uint32_t depth;
    uint64_t size_max;
    const char *allocator; /* what serves the program, for people */
    bool levels_only;      /* only collector_level is going to be told */
};

int collector_open(
    const struct collector_options *options, struct collector **ret_collector, struct problem *problem);

/* Marks the recording as finished and lets go of it. */
void collector_close(struct collector *collector);

/* Times are nanoseconds of CLOCK_MONOTONIC; `frames` are words as in a recording. */
struct collected_block {
    uint64_t number, address, size, time;
    int32_t thread;
    const uint64_t *frames;
    uint32_t frame_count;
    uint32_t flags; /* enum stack_flag */
};

void collector_allocated(struct collector *collector, const struct collected_block *block);
/* Thread 0: not known. Does nothing if the block is not known. */
void collector_freed(struct collector *collector, uint64_t number, int32_t thread, uint64_t time);

/* Where single blocks are not known: the process has `bytes` of memory now. */
void collector_level(struct collector *collector, uint64_t bytes, uint64_t time);

/* A file that frames may lie in. */
void collector_module(struct collector *collector, const struct module_record *module, const char *path);

/* The exact bytes that a thread has allocated so far, and its end. */
void collector_thread_bytes(struct collector *collector, int32_t thread, uint64_t bytes);
void collector_thread_ended(struct collector *collector, int32_t thread, uint64_t bytes, uint64_t time);

/* Not all of the program's allocators are seen. */
void collector_partial(struct collector *collector);

/* What was lost before it came here; the figures replace those of the last call. */
void collector_losses(struct collector *collector, const uint64_t lost[DROP_KINDS], uint64_t unknown_frees);

/* The figures begin now: what was told before is not counted any more, and its frees are not. */
void collector_forget_all(struct collector *collector, uint64_t time);

struct collector_figures {
    double live_bytes, peak_bytes; /* estimated */
    uint64_t samples, frees;
};
struct collector_figures collector_figures(struct collector *collector);
const char *collector_path(const struct collector *collector);

#endif
