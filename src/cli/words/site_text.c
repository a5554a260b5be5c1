#include "cli/words/site_text.h"
#include "base/memory.h"
#include "base/path.h"
#include "cli/terminal/text.h"
#include "view/short_name.h"

#include <string.h>

/* Whether the name already holds the module: a function without a name is called "[libx.so+0x12]". */
static bool says_module(const char *function, const char *module) {
    const char *name = path_last_part(module);
    size_t length = strlen(name);
    return function[0] == '[' && strncmp(function + 1, name, length) == 0 &&
           strncmp(function + 1 + length, "+0x", 3) == 0;
}

struct place_text site_text(const char *function, const char *file, int line, const char *module, bool full) {
    struct place_text text = {0};
    if (file) file = text_path_from_here(file);
    cleanup_text char *raw_place = file && line > 0 ? memory_format_text("%s:%d", file, line)
                                   : file           ? memory_copy_text(file)
                                   : module         ? memory_copy_text(path_last_part(module))
                                                    : NULL;
    if (function) {
        text.name = text_clean(function);
        if (!full && function[0] != '[') short_name(text.name, terminal_glyphs()->ellipsis);
        if (raw_place && (file || !says_module(function, module))) text.place = text_clean(raw_place);
    } else {
        const char *name = file ? raw_place : module;
        text.name = text_clean(name ? name : "[not known]");
    }
    return text;
}
