/* The collector: writes the recording of another process from what it is told about that process. It fills the
 * tables of core/ as the recorder inside a program does, so every view and format works on the recording, also
 * while it is being written.
 *
 * Blocks have numbers that are never used twice (attach/bpf/event.h); a free names the number. A collector
 * belongs to one thread. */
#ifndef MALLOSCOPE_ATTACH_SESSION_COLLECTOR_H
#define MALLOSCOPE_ATTACH_SESSION_COLLECTOR_H

#include "base/problem.h"
#include "core/recording.h"

#include <stdbool.h>
#include <stdint.h>

struct collector;

struct collector_options {
    const char *path; /* of the recording */
    bool replace;     /* a file that exists is replaced */
    int pid;
    uint64_t rate;         /* sampling interval; 1: all blocks */
    uint32_t depth;        /* frames that are kept of a stack */
    uint64_t size_max;     /* of the recording, in bytes */
    const char *allocator; /* names the program's allocators, for people */
    bool levels_only;      /* collector_note_level is the only source: there will be no blocks */
};

int collector_open(
    const struct collector_options *options, struct collector **ret_collector, struct problem *problem);

/* Marks the recording as finished, closes it and frees the collector. */
void collector_close(struct collector *collector);

/* All times are nanoseconds of CLOCK_MONOTONIC. `frames` are frame words (core/recording.h). */
struct collected_block {
    uint64_t number, address, size, time;
    int32_t thread;
    const uint64_t *frames;
    uint32_t frame_count;
    uint32_t flags; /* enum stack_flag */
};

void collector_allocated(struct collector *collector, const struct collected_block *block);
/* `thread` is 0 if it is not known. Does nothing if the block was not recorded. */
void collector_freed(struct collector *collector, uint64_t number, int32_t thread, uint64_t time);

/* Records that the process has `bytes` of memory at this time, where single blocks cannot be seen. */
void collector_note_level(struct collector *collector, uint64_t bytes, uint64_t time);

/* Records a file that frames may lie in. */
void collector_note_module(struct collector *collector, const struct module_record *module, const char *path);

/* What a thread has allocated and freed so far, exactly. */
struct collected_thread {
    uint64_t bytes;
    uint64_t frees;         /* of anything but NULL */
    uint64_t frees_unknown; /* those of blocks that are not tracked: older, or not sampled */
};
void collector_thread_figures(
    struct collector *collector, int32_t thread, const struct collected_thread *figures);
void collector_thread_ended(
    struct collector *collector, int32_t thread, const struct collected_thread *figures, uint64_t time);

/* Marks the recording as partial: some of the program's allocators are not seen. */
void collector_mark_partial(struct collector *collector);

/* Marks the recording as late: the program ran for a while before its probes were in place. */
void collector_mark_late(struct collector *collector);

/* What was lost before it came to the collector. The figures replace those of the former call. */
void collector_note_losses(struct collector *collector, const uint64_t lost[DROP_KINDS]);

/* Lets all figures begin now: blocks that were told before do not count any more, nor do their frees. */
void collector_forget_all(struct collector *collector, uint64_t time);

struct collector_figures {
    double live_bytes, peak_bytes; /* estimated */
    uint64_t samples, frees;
};
struct collector_figures collector_figures(struct collector *collector);
const char *collector_path(const struct collector *collector);

#endif
