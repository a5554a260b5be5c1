#include "cli/words/leak_text.h"
#include "base/memory.h"
#include "cli/terminal/units.h"

#include <string.h>

const char *leak_text_kind(enum leak_kind kind) {
    static const char *const names[] = {[LEAK_GROWING] = "growing",
        [LEAK_OUTLIVING] = "outliving",
        [LEAK_NEVER_FREED] = "never_freed",
        [LEAK_IN_USE] = "in_use",
        [LEAK_START_UP] = "start_up"};
    return names[kind];
}

/* What live_samples counts: in an exact recording every object is a sample. */
static const char *noun(const struct leak_scene *scene) {
    return scene->exact ? "object" : "sample";
}

static char *freed_text(const struct leak *leak, const struct leak_scene *scene) {
    const struct figures *figures = &leak->row->figures;
    uint64_t live = figures->live_samples;
    if (leak->never_freed && scene->exact) return memory_copy_text("nothing from here was ever freed");
    if (leak->never_freed)
        return memory_format_text("none of the %s from here was ever freed",
            units_counted((double)figures->samples, "sample").text);
    struct unit_text freed = units_counted(figures->freed_objects, "object");
    cleanup_text char *exceptions =
        leak->freed_later > 0 ? memory_format_text("all but %s", units_count(leak->freed_later).text)
                              : memory_copy_text("any");
    cleanup_text char *these =
        live == 1 ? memory_copy_text("it is")
        : leak->outliving >= live
            ? memory_copy_text("all are")
            : memory_format_text("%s of %s %s", units_count((double)leak->outliving).text,
                  units_counted((double)live, noun(scene)).text, leak->outliving == 1 ? "is" : "are");
    return memory_format_text("%s older than %s of the %s freed here became", these, exceptions, freed.text);
}

static char *growing_text(const struct leak *leak, const struct leak_scene *scene) {
    cleanup_text char *freed = freed_text(leak, scene);
    return memory_format_text(
        "it grows: %u of %d parts of the run have left something behind, lately about %s/s; %s", leak->parts,
        BIRTH_PARTS, units_bytes(leak->growth).text, freed);
}

static char *never_freed_text(const struct leak *leak, const struct leak_scene *scene) {
    const struct figures *figures = &leak->row->figures;
    cleanup_text char *freed = freed_text(leak, scene);
    if (!figures->live_samples) return memory_copy_text(freed);
    int first = 0, last = BIRTH_PARTS - 1;
    while (first < last && !figures->births[first]) first++;
    while (last > first && !figures->births[last]) last--;
    if (figures->live_samples == 1)
        return memory_format_text("%s; allocated %d%% through the run", freed,
            (int)(100.0 * 1e-9 * (double)figures->oldest / (scene->duration > 0 ? scene->duration : 1)));
    if (first == BIRTH_PARTS - 1) return memory_format_text("%s; all came at the end of the run", freed);
    return memory_format_text("%s; all came in part%s %d%s%.0d of %d of the run", freed,
        first == last ? "" : "s", first + 1, first == last ? "" : " to ", first == last ? 0 : last + 1,
        BIRTH_PARTS);
}

static char *in_use_text(const struct leak *leak, const struct leak_scene *scene) {
    const struct figures *figures = &leak->row->figures;
    if (!scene->has_exited && figures->births[BIRTH_PARTS - 1] == figures->live_samples)
        return memory_copy_text("allocated lately, too young to tell");
    return memory_format_text("not older than the %s freed here became: a cache, or work under way",
        units_counted(figures->freed_objects, "object").text);
}

char *leak_text_why(const struct leak *leak, const struct leak_scene *scene) {
    switch (leak->kind) {
    case LEAK_GROWING:
        return growing_text(leak, scene);
    case LEAK_OUTLIVING:
        return freed_text(leak, scene);
    case LEAK_NEVER_FREED:
        return never_freed_text(leak, scene);
    case LEAK_IN_USE:
        return in_use_text(leak, scene);
    case LEAK_START_UP:
        if (leak->inherited) return memory_copy_text("taken over from the process that forked this one");
        return memory_format_text("allocated in the first %s of the run, and no more since",
            units_seconds(scene->duration / BIRTH_PARTS).text);
    }
    return memory_copy_text("");
}
