#include "cli/words/unrecorded_text.h"
#include "base/memory.h"
#include "cli/terminal/units.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#define PROGRAMS_SHOWN 5

const char *unrecorded_text_reason(enum unrecorded_reason reason) {
    switch (reason) {
    case UNRECORDED_STATIC:
        return "statically linked";
    case UNRECORDED_OTHER_LIBC:
        return "made for another C library";
    case UNRECORDED_MACHINE:
        return "32-bit, or for another machine";
    case UNRECORDED_SANITIZER:
        return "built with a sanitizer";
    case UNRECORDED_OWN_MALLOC:
        return "has its own malloc inside";
    case UNRECORDED_RIGHTS:
        return "gains rights as it starts";
    case UNRECORDED_UNREACHABLE:
        return "started where the recorder's file cannot be read";
    case UNRECORDED_ENVIRONMENT:
        return "started without LD_PRELOAD";
    case UNRECORDED_NO_FOLLOW:
        return "what the program became, with --no-follow";
    case UNRECORDED_NAMESPACE:
        return "a library in a linker namespace of its own";
    case UNRECORDED_NONE:
    case UNRECORDED_REASONS:
        break;
    }
    return "not known why";
}

/* Whether `malloscope attach` can help: it sees whatever a process does, but not what the user has left out. */
static bool can_attach(const struct unrecorded_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (list->list[i].reason != UNRECORDED_NO_FOLLOW) return true;
    return list->others > 0;
}

char *unrecorded_text(const struct unrecorded_list *list) {
    uint64_t total = unrecorded_list_total(list), shown = 0;
    char *text = NULL;
    size_t size = 0;
    if (!total) return NULL;
    FILE *out = memory_stream_open(&text, &size);
    fprintf(out, "%s that it started or became", units_counted((double)total, "program").text);
    for (size_t i = 0; i < list->count && i < PROGRAMS_SHOWN; i++) {
        const struct unrecorded *program = &list->list[i];
        fprintf(out, "%s %s (%s)", i ? "," : ":", program->path, unrecorded_text_reason(program->reason));
        if (program->count > 1) fprintf(out, " %s times", units_count((double)program->count).text);
        shown += program->count;
    }
    if (shown < total) fprintf(out, " and %s more", units_count((double)(total - shown)).text);
    if (can_attach(list))
        fputs("; 'sudo malloscope attach PID' can record such a program while it runs", out);
    memory_stream_close(out);
    return text;
}
