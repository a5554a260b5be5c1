#include "view/frame_list.h"

#include "base/memory.h"
#include "base/path.h"
#include "view/name_key.h"

#include <stdlib.h>

/* Hashing the names of a frame takes a hundred times as long as hashing two addresses. Stacks that follow each
 * other share most of their frames, so that nearly all frames are found in this cache. */
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

static const char *compared_path(const char *path, enum frame_match match) {
    return match == MATCH_PLACES ? path : path_last_part(path);
}

/* Between builds the file identifies the code, and the module may have been renamed. */
static const char *compared_module(const struct listed_frame *frame, enum frame_match match) {
    return match != MATCH_PLACES && frame->file ? NULL : compared_path(frame->module, match);
}

static uint64_t hash_frame(const struct listed_frame *frame, enum frame_match match) {
    uint64_t hash = name_key_hash(NAME_KEY_START, frame->function);
    hash = name_key_hash(hash, compared_path(frame->file, match));
    return name_key_hash(hash, compared_module(frame, match)) + (uint64_t)frame->line;
}

struct search {
    const struct frame_list *list;
    const struct listed_frame *frame;
};

/* `inlined` is not compared: a line that is inlined in one place and called in another is one frame. */
static bool is_equal(const void *context, uint32_t number) {
    const struct search *search = context;
    enum frame_match match = search->list->match;
    const struct listed_frame *a = &search->list->frames[number], *b = search->frame;
    return a->line == b->line && name_key_equal(a->function, b->function) &&
           name_key_equal(compared_path(a->file, match), compared_path(b->file, match)) &&
           name_key_equal(compared_module(a, match), compared_module(b, match));
}

static uint32_t find_or_add(struct frame_list *list, const struct listed_frame *frame) {
    uint64_t hash = hash_frame(frame, list->match);
    uint32_t number = hash_index_find(&list->index, hash, is_equal, &(struct search){list, frame});
    if (number != HASH_INDEX_NONE) return number;
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 1024;
        list->frames = memory_reallocate(list->frames, list->capacity * sizeof *list->frames);
    }
    list->frames[list->count] = *frame;
    hash_index_add(&list->index, hash, list->count);
    return list->count++;
}

uint32_t frame_list_number(struct frame_list *list, const struct source_frame *source) {
    if (!list->recent) list->recent = memory_allocate(RECENT_FRAMES * sizeof *list->recent);
    uint64_t mixed =
        ((uintptr_t)source->symbol * 31 + (uintptr_t)source->module) * UINT64_C(0x9e3779b97f4a7c15);
    struct recent_frame *recent = &list->recent[mixed >> 32 & (RECENT_FRAMES - 1)];
    if (recent->symbol == source->symbol && recent->module == source->module) return recent->frame;
    struct listed_frame frame = frame_of(source, list->match);
    *recent = (struct recent_frame){source->symbol, source->module, find_or_add(list, &frame)};
    return recent->frame;
}

struct listed_frame *frame_list_take(struct frame_list *list) {
    struct listed_frame *frames = list->frames;
    hash_index_free(&list->index);
    free(list->recent);
    *list = (struct frame_list){.match = list->match};
    return frames;
}
