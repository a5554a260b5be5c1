#include "view/frame_list.h"
#include "view/name_key.h"

#include <stdlib.h>

#define RECENT_FRAMES 4096

struct recent_frame {
    const struct symbol *symbol;
    const struct model_module *module;
    uint32_t frame;
};

static struct listed_frame frame_of(const struct source_frame *source, enum frame_match match) {
    const struct symbol *symbol = source->symbol;
    return (struct listed_frame){.function = symbol->function,
        .file = symbol->file,
        .module = source->module ? source->module->path : NULL,
        .line = match == MATCH_NAMES ? 0 : symbol->line,
        .inlined = symbol->inlined,
        .interpreted = symbol->interpreted,
        .given = symbol->given != NULL};
}

static const char *known_part(const char *path, enum frame_match match) {
    return match == MATCH_PLACES ? path : name_key_without_folder(path);
}

/* Where the file is known, the library is told by it, and may have another name in another build. */
static const char *known_module(const struct listed_frame *frame, enum frame_match match) {
    return match != MATCH_PLACES && frame->file ? NULL : known_part(frame->module, match);
}

static uint64_t hash_frame(const struct listed_frame *frame, enum frame_match match) {
    uint64_t hash = name_key_hash(NAME_KEY_START, frame->function);
    hash = name_key_hash(hash, known_part(frame->file, match));
    hash = name_key_hash(hash, known_module(frame, match)) + (uint64_t)frame->line;
    return hash ^ hash >> 29;
}

/* A line that is inlined in one place and called in another is one frame. */
static bool same_frame(const struct listed_frame *a, const struct listed_frame *b, enum frame_match match) {
    return a->line == b->line && name_key_equal(a->function, b->function) &&
           name_key_equal(known_part(a->file, match), known_part(b->file, match)) &&
           name_key_equal(known_module(a, match), known_module(b, match));
}

static bool grow(struct frame_list *list) {
    if (!list->recent) list->recent = calloc(RECENT_FRAMES, sizeof *list->recent);
    uint32_t capacity = list->capacity ? 2 * list->capacity : 1024;
    void *frames = reallocarray(list->frames, capacity, sizeof *list->frames);
    if (frames) list->frames = frames;
    uint32_t *index = calloc(2 * (size_t)capacity, sizeof *index);
    if (!frames || !index || !list->recent) {
        free(index);
        return false;
    }
    free(list->index);
    list->index = index;
    list->capacity = capacity;
    for (uint32_t i = 0; i < list->count; i++) {
        size_t slot = hash_frame(&list->frames[i], list->match) & (2 * (size_t)capacity - 1);
        while (index[slot]) slot = (slot + 1) & (2 * (size_t)capacity - 1);
        index[slot] = i + 1;
    }
    return true;
}

uint32_t frame_list_number(struct frame_list *list, const struct source_frame *source) {
    if (list->count == list->capacity && !grow(list)) return FRAME_NONE;
    uint64_t mixed =
        ((uintptr_t)source->symbol * 31 + (uintptr_t)source->module) * UINT64_C(0x9e3779b97f4a7c15);
    struct recent_frame *recent = &list->recent[mixed >> 32 & (RECENT_FRAMES - 1)];
    if (recent->symbol == source->symbol && recent->module == source->module) return recent->frame;

    struct listed_frame frame = frame_of(source, list->match);
    size_t mask = 2 * (size_t)list->capacity - 1, slot = hash_frame(&frame, list->match) & mask;
    while (list->index[slot] && !same_frame(&list->frames[list->index[slot] - 1], &frame, list->match))
        slot = (slot + 1) & mask;
    if (!list->index[slot]) {
        list->frames[list->count] = frame;
        list->index[slot] = ++list->count;
    }
    *recent = (struct recent_frame){source->symbol, source->module, list->index[slot] - 1};
    return recent->frame;
}

struct listed_frame *frame_list_take(struct frame_list *list) {
    struct listed_frame *frames = list->frames;
    free(list->index);
    free(list->recent);
    *list = (struct frame_list){.match = list->match};
    return frames;
}
