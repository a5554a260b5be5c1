#include "cli/terminal/pieces.h"
#include "base/memory.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"

#include <stdarg.h>
#include <string.h>

void pieces_add(struct pieces *pieces, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    cleanup_text char *clean = text_clean_format(format, arguments);
    va_end(arguments);
    size_t room = pieces->width > strlen(pieces->indent) + 8 ? pieces->width - strlen(pieces->indent) : 8;
    cleanup_text char *text = pieces->width ? text_shorten(clean, room) : memory_copy_text(clean);
    size_t width = text_width(text);
    const char *separator = pieces->used ? terminal_glyphs()->dot : "";
    size_t needed = width + (pieces->used ? 3 : strlen(pieces->indent));
    if (pieces->used && pieces->width && pieces->used + needed > pieces->width) {
        fputc('\n', pieces->out);
        pieces->used = 0;
        separator = "";
        needed = width + strlen(pieces->indent);
    }
    if (*separator)
        fprintf(pieces->out, " %s %s", separator, text);
    else
        fprintf(pieces->out, "%s%s", pieces->indent, text);
    pieces->used += needed;
}

void pieces_end(struct pieces *pieces) {
    if (pieces->used) fputc('\n', pieces->out);
    pieces->used = 0;
}
