/* Each type of an enumerated heap has a stack record of its own, whose only frame is the heap's name. Nothing is known
 * of single allocations. The figures of a record are raised or lowered to what is listed, as if the difference had been
 * allocated or freed between two listings. */
#include "record/api/own_heaps.h"

#include "core/events.h"
#include "core/name_table.h"
#include "core/stack_table.h"
#include "platform/pages.h"
#include "record/api/enumerated_heaps.h"
#include "record/sample/recorder_state.h"

#define TYPES_MOST 1024u /* of one heap; what is listed with further types counts as having none */

struct listed {
    uint32_t type;
    uint64_t bytes, objects;
};

/* What `enumerate` has listed, by type. The first entry is for what has no type. */
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

/* Brings the figures of types that are not listed, but were listed before, to zero. */
static void clear_others(const struct visitor *visitor, uint32_t heap) {
    struct recording *recording = &recorder.recording;
    /* Acquire: pairs with the release in table_append_many: the segments of so many records are there. */
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
    /* A type that is listed with no objects counts as not listed. */
    uint32_t kept = 0;
    for (uint32_t i = 0; i < visitor->count; i++)
        if (visitor->listed[i].objects) visitor->listed[kept++] = visitor->listed[i];
    visitor->count = kept;
    clear_others(visitor, heap);
    pages_give(visitor, sizeof *visitor);
}
