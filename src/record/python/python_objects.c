#define MSCOPE_LINKED
#include "record/python/python_objects.h"

#include "core/heap_table.h"
#include "core/sampler.h"
#include "malloscope.h"
#include "record/api/own_heaps.h"
#include "record/intercept/dl_hooks.h"
#include "record/intercept/real_allocator.h"
#include "record/sample/mark.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"
#include "record/sample/work.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define PYTHON_HEAP "python objects" /* HEAP_PYTHON in the model */
#define SMALL_MOST                                                                                           \
    512 /* bytes; the interpreter takes larger objects from malloc, where they are seen anyway */

typedef const struct unwind_registers caller;

/* PyMemAllocatorEx: the functions that the interpreter calls for one of its domains. */
struct allocator {
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *block, size_t size);
    void (*free)(void *context, void *block);
};

enum domain { DOMAIN_MEMORY = 1, DOMAIN_OBJECTS = 2 };

static struct allocator below[3]; /* by domain: the interpreter's own functions */
static mscope_heap heap;

/* Bytes until the calling thread's next sample. 0: the next interval is to be drawn, or every object is recorded. */
static __thread uint64_t countdown;

void *entry_object_malloc_due(void *context, size_t size);
void *entry_object_calloc_due(void *context, size_t count, size_t size);
void *entry_object_realloc_due(void *context, void *block, size_t size);
void *python_objects_malloc(const struct allocator *next, size_t size, caller *at);
void *python_objects_calloc(const struct allocator *next, size_t count, size_t size, caller *at);
void *python_objects_realloc(const struct allocator *next, void *block, size_t size, caller *at);

/* ---- what the interpreter calls ----
 *
 * The functions end with a jump: to the interpreter's allocator, or to the entry code of the cold path (entry_*.S). So
 * they have no frame on the stack that is walked. */

static inline bool is_small(size_t size) {
    return size - 1 < SMALL_MOST;
}

/* Charges the calling thread for an object of `size` bytes. True: a sample may be due, and nothing was charged. */
static inline bool is_due(size_t size) {
    if (!is_small(size)) return false;
    if (__builtin_expect(countdown <= size, 0)) return true;
    countdown -= size;
    return false;
}

/* The word in front of a block belongs to its allocator and can be read, unless the block begins a page. */
__attribute__((no_sanitize("address", "thread"))) static inline bool may_be_marked(const void *block) {
    return !mark_begins_page(block) && !mark_is_tagged(block) &&
           ((const struct mark *)block - 1)->mark == MARK_OBJECT;
}

static void *object_malloc(void *context, size_t size) {
    const struct allocator *next = context;
    if (__builtin_expect(is_due(size), 0)) return entry_object_malloc_due(context, size);
    return next->malloc(next->context, size);
}

static void *object_calloc(void *context, size_t count, size_t size) {
    const struct allocator *next = context;
    if (__builtin_expect(is_due(count * size), 0)) return entry_object_calloc_due(context, count, size);
    return next->calloc(next->context, count, size);
}

static void *object_realloc(void *context, void *block, size_t size) {
    const struct allocator *next = context;
    if (__builtin_expect(may_be_marked(block) || is_due(size), 0))
        return entry_object_realloc_due(context, block, size);
    return next->realloc(next->context, block, size);
}

static void free_marked(const struct allocator *next, void *block);

static void object_free(void *context, void *block) {
    const struct allocator *next = context;
    if (__builtin_expect(may_be_marked(block), 0))
        free_marked(next, block);
    else
        next->free(next->context, block);
}

/* ---- the decision ---- */

#define LATER (UINT64_C(64) << 10) /* bytes after which a thread that cannot record asks again */

/* Whether the calling thread can record objects. */
static __attribute__((noinline, cold)) bool can_record(void) {
    uint32_t found = own_heaps_number(heap);
    if (found == HEAP_NONE) return false;
    recorder.objects_heap = found;
    return true;
}

static uint64_t draw(void) {
    return sampler_draw(recorder_thread->random, heap_table_rate(&recorder.recording, recorder.objects_heap));
}

/* Charges the calling thread. True: this object is to be sampled. */
static bool take(size_t size) {
    if (__builtin_expect(!recorder.objects_heap || !recorder_thread || !recorder_is_recording(), 0) &&
        !can_record()) {
        countdown = LATER;
        return false;
    }
    if (recorder.exact) return recorder_is_active();
    if (countdown == 0) countdown = draw();
    if (countdown > size) {
        countdown -= size;
        return false;
    }
    countdown = draw();
    return recorder_is_active();
}

/* ---- sampled objects, which begin behind a mark ---- */

/* A bit in a mark's distance: the memory comes from malloc, not from the interpreter's allocator. */
#define FROM_MALLOC 1u

static void *base_of(void *block, uint64_t distance) {
    return (char *)block - (distance & ~(uint64_t)FROM_MALLOC);
}

/* Memory for an object, with room for a mark in front of it. If the mark makes it too large for the interpreter's
 * allocator, or if the object would begin a page, the memory comes from malloc, past the recorder. */
static void *behind_room(const struct allocator *next, size_t size, bool zeroed, uint64_t *ret_distance) {
    size_t total = size + MARK_ROOM;
    if (total <= SMALL_MOST) {
        char *base = zeroed ? next->calloc(next->context, 1, total) : next->malloc(next->context, total);
        *ret_distance = MARK_ROOM;
        if (!base || !mark_begins_page(base + MARK_ROOM)) return base ? base + MARK_ROOM : NULL;
        next->free(next->context, base);
    }
    char *base =
        zeroed ? real_allocator.calloc(1, total + MARK_ROOM) : real_allocator.malloc(total + MARK_ROOM);
    if (!base || mark_is_tagged(base)) {
        real_allocator.free(base);
        return NULL;
    }
    char *block = mark_place(base, MARK_ROOM);
    *ret_distance = (uint64_t)(block - base) | FROM_MALLOC;
    return block;
}

static void record(void *block, uint64_t distance, size_t size, caller *at) {
    struct sample sample = recorder_sample(block, size, recorder.objects_heap, at);
    mark_set_as(block, distance, &sample, MARK_OBJECT);
}

/* Counts a marked object as freed. Its memory is yet to be given back. */
static void forget(void *block) {
    mark_clear(block);
    recorder_end(block, recorder.objects_heap);
}

static void give_back(const struct allocator *next, void *block, uint64_t distance) {
    if (distance & FROM_MALLOC)
        real_allocator.free(base_of(block, distance));
    else
        next->free(next->context, base_of(block, distance));
}

/* Flattened: in exact mode this is what the free of an object costs. */
static __attribute__((noinline, flatten)) void free_marked(const struct allocator *next, void *block) {
    uint64_t distance = mark_distance_as(block, MARK_OBJECT);
    if (!distance) { /* the word in front of it is equal to the mark by chance */
        next->free(next->context, block);
        return;
    }
    struct work work;
    work_begin(&work);
    forget(block);
    work_end(&work);
    give_back(next, block, distance);
}

/* ---- the cold paths, called by the entry code with the registers of the caller ---- */

/* Flattened: in exact mode this is what an object costs. */
__attribute__((flatten)) void *python_objects_malloc(const struct allocator *next, size_t size, caller *at) {
    uint64_t distance;
    void *block = take(size) ? behind_room(next, size, false, &distance) : NULL;
    if (!block) return next->malloc(next->context, size);
    record(block, distance, size, at);
    return block;
}

void *python_objects_calloc(const struct allocator *next, size_t count, size_t size, caller *at) {
    uint64_t distance;
    void *block = take(count * size) ? behind_room(next, count * size, true, &distance) : NULL;
    if (!block) return next->calloc(next->context, count, size);
    record(block, distance, count * size, at);
    return block;
}

/* Resizes an object that was not sampled. If it is sampled now, it moves to a place behind a mark. */
static void *resize_unmarked(const struct allocator *next, void *block, size_t size, caller *at) {
    uint64_t distance;
    bool sampled = is_small(size) && take(size);
    void *resized = next->realloc(next->context, block, size);
    void *marked = sampled && resized ? behind_room(next, size, false, &distance) : NULL;
    if (!marked) return resized;
    memcpy(marked, resized, size);
    next->free(next->context, resized);
    record(marked, distance, size, at);
    return marked;
}

void *python_objects_realloc(const struct allocator *next, void *block, size_t size, caller *at) {
    if (!block) return python_objects_malloc(next, size, at);
    uint64_t old_distance = mark_distance_as(block, MARK_OBJECT), distance = 0;
    if (!old_distance) return resize_unmarked(next, block, size, at);
    uint64_t old_size = mark_sample(block, 0).size;
    void *resized = is_small(size) && take(size) ? behind_room(next, size, false, &distance) : NULL;
    if (!resized) {
        distance = 0;
        resized = next->malloc(next->context, size);
    }
    if (!resized) return NULL;
    memcpy(resized, block, old_size < size ? old_size : size);
    forget(block);
    give_back(next, block, old_distance);
    if (distance) record(resized, distance, size, at);
    return resized;
}

/* ---- the beginning ---- */

void python_objects_start(void) {
    void (*get)(int domain, struct allocator *), (*set)(int domain, struct allocator *);
    *(const void **)&get = dl_hooks_find("PyMem_GetAllocator");
    *(const void **)&set = dl_hooks_find("PyMem_SetAllocator");
    if (!get || !set) return;
    heap = mscope_heap_register(PYTHON_HEAP, NULL);
    for (int domain = DOMAIN_MEMORY; heap && domain <= DOMAIN_OBJECTS; domain++) {
        struct allocator ours = {&below[domain], object_malloc, object_calloc, object_realloc, object_free};
        get(domain, &below[domain]);
        set(domain, &ours);
    }
}
