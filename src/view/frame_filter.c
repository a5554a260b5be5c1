#include "view/frame_filter.h"

#include "base/memory.h"

#include <stdlib.h>

struct judged_symbol {
    const struct symbol *symbol;
    bool matches;
};

int frame_filter_make(const char *text, struct frame_filter *ret_filter, struct problem *problem) {
    struct frame_filter filter = {.on = text != NULL};
    int error = text ? regcomp(&filter.expression, text, REG_EXTENDED | REG_NOSUB) : 0;
    if (error) {
        char reason[256];
        regerror(error, &filter.expression, reason, sizeof reason);
        return problem_set(problem, PROBLEM_USAGE,
            "write a POSIX extended regular expression, for instance 'parse|libxml'; put \\ before a "
            "character "
            "that is meant as it is",
            "'%s' is not a regular expression: %s", text, reason);
    }
    *ret_filter = filter;
    return 0;
}

void frame_filter_free(struct frame_filter *filter) {
    if (filter->on) regfree(&filter->expression);
    free(filter->judged);
    hash_index_free(&filter->index);
    *filter = (struct frame_filter){0};
}

bool frame_filter_matches_text(const struct frame_filter *filter, const char *text) {
    return !filter->on || (text && regexec(&filter->expression, text, 0, NULL, 0) == 0);
}

static bool judge(const struct frame_filter *filter, const struct source_frame *frame) {
    return frame_filter_matches_text(filter, frame->symbol->function) ||
           frame_filter_matches_text(filter, frame->symbol->given) ||
           frame_filter_matches_text(filter, frame->symbol->file) ||
           (frame->module && frame_filter_matches_text(filter, frame->module->path));
}

struct search {
    const struct judged_symbol *judged;
    const struct symbol *symbol;
};

static bool is_equal(const void *context, uint32_t number) {
    const struct search *search = context;
    return search->judged[number].symbol == search->symbol;
}

static bool matches(struct frame_filter *filter, const struct source_frame *frame) {
    const struct symbol *symbol = frame->symbol;
    uint64_t hash = (uintptr_t)symbol;
    uint32_t number =
        hash_index_find(&filter->index, hash, is_equal, &(struct search){filter->judged, symbol});
    if (number != HASH_INDEX_NONE) return filter->judged[number].matches;
    if (filter->count == filter->capacity) {
        filter->capacity = filter->capacity ? 2 * filter->capacity : 512;
        filter->judged = memory_reallocate(filter->judged, filter->capacity * sizeof *filter->judged);
    }
    filter->judged[filter->count] = (struct judged_symbol){symbol, judge(filter, frame)};
    hash_index_add(&filter->index, hash, filter->count);
    return filter->judged[filter->count++].matches;
}

bool frame_filter_keeps(struct frame_filter *filter, const struct source_frames *frames) {
    if (!filter->on) return true;
    for (size_t i = 0; i < frames->count; i++)
        if (matches(filter, &frames->frames[i])) return true;
    return false;
}
