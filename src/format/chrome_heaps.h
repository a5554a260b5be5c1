/* Heap dumps in the two forms that the trace viewer of Chrome reads.
 *
 * Both are the value of a key in args.dumps of a memory dump event, and name paths by their numbers in the
 * frame tree, which are the same in all events of a trace.
 *
 *     heaps_v2  what was allocated at each path, in parallel lists; paths, names and types are defined in the
 *               event itself
 *     heaps     totals of each path, and of each type there; paths and types are defined once for each
 *               process, in metadata events (stackFrames, typeNames)
 */
#ifndef MALLOSCOPE_FORMAT_CHROME_HEAPS_H
#define MALLOSCOPE_FORMAT_CHROME_HEAPS_H

#include "format/heap_dump.h"
#include "format/json.h"

/* A heap of a process at one moment. */
struct chrome_heap {
    char *name; /* as the trace has it */
    struct heap_dump dump;
};

/* Numbers that were met, of anything that is numbered from 0. Starts zeroed. */
struct number_set {
    bool *has;
    size_t size;
    bool failed; /* out of memory */
};

void number_set_free(struct number_set *set);

/* false: out of memory. */
bool chrome_heaps_write_v2(
    struct json *json, struct chrome_heap *heaps, size_t count, struct frame_tree *tree, uint64_t threshold);
/* Adds the nodes that it names to `nodes`, with all above them, and the types to `types`. */
bool chrome_heaps_write_v1(struct json *json, const struct chrome_heap *heaps, size_t count,
    const struct frame_tree *tree, uint64_t threshold, struct number_set *nodes, struct number_set *types);

/* The objects that the metadata events of a process hold. */
void chrome_heaps_write_stack_frames(
    struct json *json, const struct frame_tree *tree, const struct number_set *nodes);
void chrome_heaps_write_type_names(
    struct json *json, const struct frame_tree *tree, const struct number_set *types);

/* Numbers as the viewer reads most of them: a text of hexadecimal digits. */
void chrome_key_hex(struct json *json, const char *key, uint64_t value);

#endif
