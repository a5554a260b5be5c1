#include "cli/site_text.h"
#include "cli/memory.h"
#include "cli/text.h"
#include "format/text.h"
#include "view/frames.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What lies below the current folder is shown as seen from there. */
static const char *from_here(const char *file) {
    static char folder[4096];
    static size_t length;
    if (!folder[0] && getcwd(folder, sizeof folder)) length = strlen(folder);
    return file && length > 1 && strncmp(file, folder, length) == 0 && file[length] == '/' ? file + length + 1
                                                                                           : file;
}

struct place_text site_text(const char *function, const char *file, int line, const char *module) {
    struct place_text text = {0};
    file = from_here(file);
    cleanup_text char *raw_place = file && line > 0 ? format_text("%s:%d", file, line)
                                   : file           ? copy_text(file)
                                   : module         ? copy_text(text_base_name(module))
                                                    : NULL;
    if (function) {
        text.name = text_clean(function);
        /* A function that is not known is named by its address and module. */
        bool says_module = module && strstr(function, text_base_name(module)) != NULL;
        if (raw_place && (file || !says_module)) text.place = text_clean(raw_place);
    } else {
        const char *name = file ? raw_place : module;
        text.name = text_clean(name ? name : "[not known]");
    }
    return text;
}

void stack_print(struct resolver *resolver, const struct model_stack *stack, bool raw, const char *indent,
    const struct terminal *terminal) {
    struct source_frames frames = {0};
    if (!source_frames_expand(&frames, resolver, stack)) return;
    size_t room = terminal->width > strlen(indent) + 8 ? terminal->width - strlen(indent) : 8;
    for (size_t i = source_frames_site(&frames, raw); i < frames.count; i++) {
        const struct source_frame *frame = &frames.frames[i];
        struct place_text text = site_text(frame->symbol->function, frame->symbol->file, frame->symbol->line,
            frame->module ? frame->module->path : NULL);
        fputs(indent, stdout);
        place_text_print(text, terminal->width ? room : 0, terminal);
        putchar('\n');
        place_text_free(&text);
    }
    source_frames_free(&frames);
}
