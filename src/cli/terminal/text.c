#include "cli/terminal/text.h"
#include "base/memory.h"
#include "cli/terminal/terminal.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

/* Decodes the character at `text`. Returns its length in bytes, or 0 if the bytes are not valid UTF-8. Overlong forms
 * and surrogates are not valid. */
static size_t decode(const unsigned char *text, uint32_t *ret_character) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = text[0] < 0x80 ? 1 : text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : text[0] >= 0xc2 ? 2 : 0;
    if (length == 0 || text[0] > 0xf4) return 0;
    uint32_t character = length == 1 ? text[0] : text[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
        character = character << 6 | (text[i] & 0x3f);
    }
    if (character < smallest[length] || character > 0x10ffff || (character >= 0xd800 && character < 0xe000))
        return 0;
    *ret_character = character;
    return length;
}

static bool is_harmless(uint32_t character) {
    if (character < 0x20 || (character >= 0x7f && character < 0xa0)) return false;
    if (character < 0x7f) return true;
    if (!terminal_glyphs()->unicode) return false;
    bool turns_direction =
        (character >= 0x200b && character <= 0x200f) || (character >= 0x2028 && character <= 0x202e) ||
        (character >= 0x2060 && character <= 0x206f) || (character >= 0xfff9 && character <= 0xfffb) ||
        (character >= 0xe0000 && character <= 0xe0fff) || character == 0xad || character == 0x61c ||
        character == 0x180e || character == 0xfeff;
    return !turns_direction && wcwidth((wchar_t)character) >= 0;
}

char *text_clean(const char *text) {
    const unsigned char *in = (const unsigned char *)(text ? text : "");
    char *result =
        memory_allocate(10 * strlen((const char *)in) + 1); /* the longest replacement is "\u{10ffff}" */
    char *out = result;
    while (*in) {
        uint32_t character = 0;
        size_t length = decode(in, &character);
        if (length && is_harmless(character)) {
            memcpy(out, in, length);
            out += length;
        } else if (length > 1) {
            out += sprintf(out, "\\u{%x}", character);
        } else {
            out += sprintf(out, "\\x%02x", *in);
            length = 1;
        }
        in += length;
    }
    *out = 0;
    return result;
}

char *text_clean_format(const char *format, va_list arguments) {
    char *raw = memory_format_arguments(format, arguments);
    char *clean = text_clean(raw);
    free(raw);
    return clean;
}

const char *text_path_from_here(const char *path) {
    static char folder[PATH_MAX];
    static size_t length;
    if (!folder[0] && getcwd(folder, sizeof folder)) length = strlen(folder);
    bool inside = length > 1 && strncmp(path, folder, length) == 0 && path[length] == '/';
    return inside ? path + length + 1 : path;
}

/* How many columns the character at `text` takes, and its length in bytes. */
static size_t step(const char *text, size_t *ret_length) {
    uint32_t character;
    *ret_length = decode((const unsigned char *)text, &character);
    if (*ret_length == 0) {
        *ret_length = 1;
        return 1;
    }
    int width = character < 0x80 ? 1 : wcwidth((wchar_t)character);
    return width < 0 ? 1 : (size_t)width;
}

char *text_shell_word(const char *text) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+,:=@%";
    size_t length = strlen(text);
    if (*text == '-') { /* "./-x": otherwise it would be taken for an option */
        cleanup_text char *path = memory_format_text("./%s", text);
        return text_shell_word(path);
    }
    if (length && strspn(text, plain) == length) return memory_format_text("%s", text);
    char *word = memory_allocate(4 * length + 3),
         *end = word; /* each character may be a quote, which becomes 4 */
    *end++ = '\'';
    for (; *text; text++)
        if (*text == '\'')
            end = stpcpy(end, "'\\''");
        else
            *end++ = *text;
    strcpy(end, "'");
    return word;
}

size_t text_width(const char *text) {
    size_t width = 0, length;
    for (; *text; text += length) width += step(text, &length);
    return width;
}

char *text_shorten(const char *text, size_t width) {
    size_t all = text_width(text);
    if (all <= width) return memory_copy_text(text);
    const char *mark = terminal_glyphs()->ellipsis;
    size_t mark_width = text_width(mark);
    if (width <= mark_width) {
        char *result = memory_copy_text(mark);
        if (width < mark_width) result[width < strlen(result) && !terminal_glyphs()->unicode ? width : 0] = 0;
        return result;
    }
    size_t keep = width - mark_width, head = (keep + 1) / 2, tail = keep - head;
    const char *p = text;
    size_t length, passed = 0;
    while (*p && passed + step(p, &length) <= head) {
        passed += step(p, &length);
        p += length;
    }
    size_t head_bytes = (size_t)(p - text);
    /* Skip the middle, until no more columns are left than the tail may have. Combining marks, which have no width,
     * are skipped together with their letter. */
    while (*p && (all - passed > tail || step(p, &length) == 0)) {
        passed += step(p, &length);
        p += length;
    }
    char *result = memory_allocate(head_bytes + strlen(mark) + strlen(p) + 1);
    sprintf(result, "%.*s%s%s", (int)head_bytes, text, mark, p);
    return result;
}

/* The column at which the continuation of this line begins: under the beginning of its text, or, if the line is a
 * row of a table (two blanks in its middle), under its last column. */
static size_t hanging_indent(const char *line, size_t length) {
    size_t start = strspn(line, " ");
    const char *gap = strstr(line + start, "  ");
    if (!gap || gap >= line + length) return start;
    return (size_t)(gap - line) + strspn(gap, " ");
}

/* Is `line` the continuation of a paragraph whose line before ended at `column`? It is if that line was nearly full
 * and this one is neither empty, nor indented, nor a row of a table. */
static bool goes_on(size_t column, const char *line) {
    enum { NEARLY_FULL = 76 };
    size_t length = strcspn(line, "\n");
    return column >= NEARLY_FULL && length > 0 && hanging_indent(line, length) == 0;
}

void text_print_wrapped(FILE *out, const char *text, size_t indent, size_t width) {
    size_t column = indent, hang = indent;
    bool joined = false;
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        const char *end = line + length;
        if (!joined) hang = indent + hanging_indent(line, length);
        for (const char *word = line; word < end;) {
            size_t blanks = strspn(word, " "), size = strcspn(word + blanks, " \n");
            size_t gap = joined && word == line ? 1 : blanks;
            if (width && column > hang && column + gap + size > width) {
                fprintf(out, "\n%*s", (int)hang, "");
                column = hang;
                gap = 0;
            }
            fprintf(out, "%*s%.*s", (int)gap, "", (int)size, word + blanks);
            column += gap + size;
            word += blanks + size;
        }
        line = *end ? end + 1 : end;
        joined = width && goes_on(indent + length, line);
        if (joined || !*line) continue;
        fprintf(out, "\n%*s", *line == '\n' ? 0 : (int)indent, "");
        column = indent;
    }
    fputc('\n', out);
}

void text_print_titled(FILE *out, const char *title, const char *text) {
    struct terminal terminal = terminal_of(out);
    size_t indent = text_width(title) + 1, used = indent;
    cleanup_text char *clean = text_clean(text);
    fprintf(out, "%s%s%s", terminal.bold, title, terminal.plain);
    for (char *rest = clean, *word; (word = strtok_r(rest, " ", &rest));) {
        size_t width = text_width(word);
        if (terminal.width && used > indent && used + width + 1 > terminal.width) {
            fprintf(out, "\n%*s", (int)indent - 1, "");
            used = indent;
        }
        fprintf(out, " %s", word);
        used += width + 1;
    }
    fputc('\n', out);
}
