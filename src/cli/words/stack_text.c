#include "cli/words/stack_text.h"
#include "base/memory.h"
#include "cli/terminal/text.h"
#include "cli/words/site_text.h"
#include "view/source_frames.h"

#include <stdlib.h>
#include <string.h>

static bool same_place(const struct source_frame *a, const struct source_frame *b) {
    const struct symbol *x = a->symbol, *y = b->symbol;
    return a->module == b->module && x->line == y->line && strcmp(x->function, y->function) == 0 &&
           (x->file == y->file || (x->file && y->file && strcmp(x->file, y->file) == 0));
}

struct frame_text *stack_text_make(const struct loaded *loaded, const struct model_stack *stack,
    const struct stack_style *style, size_t *ret_count) {
    struct source_frames frames = {0};
    *ret_count = 0;
    source_frames_expand_labelled(&frames, loaded->model, loaded->resolver, stack);
    struct frame_text *texts = memory_allocate(frames.count * sizeof *texts);
    size_t site = source_frames_site(&frames, style->raw_site);
    for (size_t i = 0, next; i < frames.count; i = next) {
        const struct source_frame *frame = &frames.frames[i];
        const struct symbol *symbol = frame->symbol;
        for (next = i + 1; next < frames.count && same_place(frame, &frames.frames[next]);) next++;
        if (!source_frames_shows(&frames, site, i)) continue;
        const char *module = frame->module ? frame->module->path : NULL;
        texts[(*ret_count)++] = (struct frame_text){
            site_text(symbol->function, symbol->file, symbol->line, module, style->full_names), next - i};
    }
    source_frames_free(&frames);
    return texts;
}

void stack_text_free(struct frame_text *frames, size_t count) {
    for (size_t i = 0; i < count; i++) place_text_free(&frames[i].text);
    free(frames);
}

void stack_text_print(const struct loaded *loaded, const struct model_stack *stack,
    const struct stack_style *style, const struct terminal *terminal) {
    size_t count;
    struct frame_text *frames = stack_text_make(loaded, stack, style, &count);
    for (size_t i = 0; i < count; i++) {
        cleanup_text char *times = frames[i].repeats > 1 ? memory_format_text("  %s %zu",
                                                               terminal_glyphs()->times, frames[i].repeats)
                                                         : memory_copy_text("");
        size_t used = strlen(style->indent) + text_width(times), width = terminal->width;
        fputs(style->indent, stdout);
        place_text_print(frames[i].text, !width ? 0 : width > used + 8 ? width - used : 8, terminal);
        puts(times);
    }
    stack_text_free(frames, count);
}
