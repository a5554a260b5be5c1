/* Heaps whose allocators keep their own books: asked, when figures are about to be read, for what is live.
 *
 * Every type of such a heap has a stack record of its own, without a call stack. Nothing is known of single
 * allocations: the figures of a record are raised or lowered to what was listed, as if the difference had
 * been allocated or freed between two readings. */
#include "record/api/own_heaps.h"

#include "core/events.h"
#include "core/name_table.h"
#include "core/stack_table.h"
#include "platform/pages.h"
#include "record/api/enumerated_heaps.h"
#include "record/sample/recorder_state.h"

#define TYPES_MOST 1024u /* of a heap that are told apart; others are listed without */

struct listed {
    uint32_t type;
    uint64_t bytes, objects;
};

struct visitor {
    uint32_t count;
    struct listed listed[TYPES_MOST];
};

static struct listed *find(struct visitor *visitor, uint32_t type) {
    for (uint32_t i = 0; i < visitor->count; i++)
        if (visitor->listed[i].type == type) return &visitor->listed[i];
    if (visitor->count == TYPES_MOST) return &visitor->listed[0];
    visitor->listed[visitor->count].type = type;
    return &visitor->listed[visitor->count++];
}

static void visit(void *given, const void *address, size_t size, size_t count, const char *type) {
    (void)address;
    struct visitor *visitor = given;
    struct listed *listed = find(visitor, type ? name_table_note(&recorder.recording, type) : NAME_NONE);
    listed->bytes += size * BYTE_ONE;
    listed->objects += (uint64_t)count * OBJECT_ONE;
}

/* The types that were live at a former listing and are not any more. */
static void clear_others(const struct visitor *visitor, uint32_t heap) {
    struct recording *recording = &recorder.recording;
    /* Acquire: the segments that hold so many records are seen. */
    uint64_t stacks = atomic_load_explicit(&recording->header->stacks.count, memory_order_acquire);
    for (uint64_t i = 1; i < stacks; i++) {
        struct stack_record *stack = stack_table_get(recording, (uint32_t)i);
        if (stack->heap != heap) continue;
        bool listed = false;
        for (uint32_t k = 0; k < visitor->count; k++) listed |= visitor->listed[k].type == stack->type;
        if (!listed) events_settle(recording, (uint32_t)i, 0, 0, clock_now());
    }
}

void enumerated_heaps_read(uint32_t heap, uint32_t name, mscope_enumerate *enumerate, void *context) {
    struct visitor *visitor = pages_take(sizeof *visitor);
    if (!visitor) return;
    find(visitor, NAME_NONE);
    enumerate(context, visit, visitor);
    uint64_t frame = (uint64_t)FRAME_SCOPE << FRAME_KIND_SHIFT | name;
    for (uint32_t i = 0; i < visitor->count; i++) {
        const struct listed *listed = &visitor->listed[i];
        struct stack_key key = {
            .frames = &frame, .frame_count = 1, .heap = heap, .type = listed->type, .flags = STACK_COMPLETE};
        uint32_t stack = listed->objects ? stack_table_intern(&recorder.recording, &key) : STACK_DROPPED;
        if (stack != STACK_DROPPED)
            events_settle(&recorder.recording, stack, listed->objects, listed->bytes, clock_now());
    }
    /* What is listed without objects counts as not listed. */
    uint32_t kept = 0;
    for (uint32_t i = 0; i < visitor->count; i++)
        if (visitor->listed[i].objects) visitor->listed[kept++] = visitor->listed[i];
    visitor->count = kept;
    clear_others(visitor, heap);
    pages_give(visitor, sizeof *visitor);
}
