#include "cli/terminal/place_text.h"
#include "base/memory.h"
#include "cli/terminal/text.h"

#include <stdlib.h>
#include <string.h>

#define GAP 2

/* What follows the last slash: "dir/file.c:12" gives "file.c:12". */
static const char *last_part(const char *place) {
    const char *slash = strrchr(place, '/');
    return slash && slash[1] ? slash + 1 : place;
}

char *place_text_fit(struct place_text text, size_t width, const struct terminal *terminal) {
    enum { NAME_LEAST = 12 };
    size_t name_width = text_width(text.name);
    const char *place = text.place && *text.place ? text.place : NULL;
    if (!width) width = (size_t)-1 / 2;
    if (place && name_width + GAP + text_width(place) > width) place = last_part(place);
    size_t place_width = place ? text_width(place) + GAP : 0;
    if (place && name_width + place_width > width &&
        (name_width <= NAME_LEAST || place_width + NAME_LEAST > width)) {
        /* There is no room for both. The name matters more: the place is shortened or left out. */
        size_t room = name_width + GAP < width ? width - name_width - GAP : 0;
        if (room >= NAME_LEAST) {
            cleanup_text char *cut = text_shorten(place, room);
            return memory_format_text("%s  %s%s%s", text.name, terminal->dim, cut, terminal->plain);
        }
        place = NULL;
        place_width = 0;
    }
    cleanup_text char *name = text_shorten(text.name, width - place_width);
    return place ? memory_format_text("%s  %s%s%s", name, terminal->dim, place, terminal->plain)
                 : memory_copy_text(name);
}

void place_text_print(struct place_text text, size_t width, const struct terminal *terminal) {
    cleanup_text char *fitted = place_text_fit(text, width, terminal);
    fputs(fitted, stdout);
}

void place_text_free(struct place_text *text) {
    free(text->name);
    free(text->place);
    *text = (struct place_text){0};
}
