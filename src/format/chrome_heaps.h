/* Heap dumps in the two forms that Chrome's trace viewer reads.
 *
 * Both are the value of a key in `args.dumps` of a memory dump event. They name paths by their numbers in the frame
 * tree, which are valid in all events of a trace.
 *
 *     heaps_v2  what was allocated at each path itself, in parallel lists; the event itself defines the paths,
 *               names and types that it uses
 *     heaps     the total of each path, and of each type there; metadata events (stackFrames, typeNames) define
 *               paths and types once for each process
 */
#ifndef MALLOSCOPE_FORMAT_CHROME_HEAPS_H
#define MALLOSCOPE_FORMAT_CHROME_HEAPS_H

#include "format/heap_dump.h"
#include "format/json.h"
#include "format/number_set.h"

/* A heap of a process at one moment. */
struct chrome_heap {
    char *name; /* as the trace has it */
    struct heap_dump dump;
};

/* Writes the value of `heaps_v2`. Adds the "[long tail]" paths that it needs to `tree`. */
void chrome_heaps_write_v2(
    struct json *json, struct chrome_heap *heaps, size_t count, struct frame_tree *tree, uint64_t threshold);
/* Writes the value of `heaps`. Adds the nodes that it names, with all nodes above them, to `nodes`, and the types
 * that it names to `types`. */
void chrome_heaps_write_v1(struct json *json, const struct chrome_heap *heaps, size_t count,
    const struct frame_tree *tree, uint64_t threshold, struct number_set *nodes, struct number_set *types);

/* Write the values of `stackFrames` and `typeNames` in the metadata events of a process. */
void chrome_heaps_write_stack_frames(
    struct json *json, const struct frame_tree *tree, const struct number_set *nodes);
void chrome_heaps_write_type_names(
    struct json *json, const struct frame_tree *tree, const struct number_set *types);

#endif
