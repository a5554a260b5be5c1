#include "cli/words/advice.h"
#include "base/memory.h"
#include "base/path.h"
#include "cli/terminal/text.h"
#include "cli/words/summary.h"
#include "view/source_frames.h"

#include <stdlib.h>
#include <string.h>

/* Symbols */

#define LARGE_SHARE 0.10

struct tally {
    const struct model *model;
    double *nameless; /* for each module: the amount allocated at its sites that have no name */
    double generated; /* the same for code that is in no file, such as that of JIT compilers */
    double python_bytes, python_objects; /* allocated by the interpreter itself */
    bool interpreted;                    /* there is a Python frame among the sites */
};

static bool is_nameless(const struct source_frame *site) {
    return site->module && site->symbol->function[0] == '[';
}

/* A file may be several modules. They are counted as one: the first module of the file. */
static size_t first_of_file(const struct model *model, const struct model_module *module) {
    for (size_t i = 0; i < model->module_count; i++)
        if (strcmp(model->modules[i].path, module->path) == 0) return i;
    return (size_t)(module - model->modules);
}

static bool comes_from_a_package(const char *path) {
    return strncmp(path, "/usr/local/", 11) != 0 &&
           (strncmp(path, "/usr/", 5) == 0 || strncmp(path, "/lib", 4) == 0 || strncmp(path, "/bin", 4) == 0);
}

static void advise_symbols(FILE *out, const struct tally *tally, double whole) {
    cleanup_text char *packaged = NULL, *own = NULL;
    for (size_t i = 0; i < tally->model->module_count; i++) {
        if (!(tally->nameless[i] > LARGE_SHARE * whole)) continue;
        const char *path = tally->model->modules[i].path;
        char **list = comes_from_a_package(path) ? &packaged : &own;
        char *longer =
            memory_format_text("%s%s%s", *list ? *list : "", *list ? ", " : "", path_last_part(path));
        free(*list);
        *list = longer;
    }
    if (packaged) {
        cleanup_text char *text = memory_format_text("no symbols for %s: install %s, or set DEBUGINFOD_URLS",
            packaged, strchr(packaged, ',') ? "their -dbgsym packages" : "its -dbgsym package");
        text_print_titled(out, "note:", text);
    }
    if (own) {
        cleanup_text char *text =
            memory_format_text("no symbols for %s: build with -g, and do not strip", own);
        text_print_titled(out, "note:", text);
    }
    if (tally->generated > LARGE_SHARE * whole)
        text_print_titled(out, "note:",
            "no names for generated code: have its compiler write /tmp/perf-PID.map: node --perf-basic-prof, "
            "java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit, dotnet "
            "with DOTNET_PerfMapEnabled=1");
}

/* Python */

/* Python's own allocator serves objects of up to this many bytes. Larger ones come from malloc. */
#define PYTHON_SMALL 512

static bool is_python(const char *path) {
    const char *name = path_last_part(path);
    return strncmp(name, "libpython", 9) == 0 || strncmp(name, "python2", 7) == 0 ||
           strncmp(name, "python3", 7) == 0 || strcmp(name, "python") == 0;
}

enum objects { OBJECTS_LARGE, OBJECTS_UNSEEN, OBJECTS_ALL };

/* Which objects of Python were recorded: the large ones, all, or none of the small ones although --python-objects was
 * given. */
static enum objects objects_seen(const struct model *model) {
    enum objects seen = OBJECTS_LARGE;
    for (size_t i = 0; i < model->heap_count; i++)
        if (strcmp(model->heaps[i].name, HEAP_PYTHON) == 0) seen = OBJECTS_UNSEEN;
    for (size_t i = 0; i < model->stack_count && seen == OBJECTS_UNSEEN; i++)
        if (strcmp(model->heaps[model->stacks[i].heap].name, HEAP_PYTHON) == 0) seen = OBJECTS_ALL;
    return seen;
}

/* If the objects that come from malloc are small on average, the interpreter has another allocator
 * (PYTHONMALLOC=malloc), and nothing is missing that the note would tell of. */
static void advise_python(FILE *out, const struct tally *tally) {
    if (tally->python_objects <= 0) return;
    if (!tally->interpreted) {
        text_print_titled(out, "note:",
            tally->model->processes[0].attached ? "attached to a Python program: only native frames are "
                                                  "shown; 'malloscope run' shows Python's"
                                                : "this interpreter's own frames could not be read, so only "
                                                  "native ones are shown: CPython 3.8 to "
                                                  "3.15 is known, unless it is built without its lock");
        return;
    }
    enum objects seen = objects_seen(tally->model);
    bool are_large = tally->python_bytes / tally->python_objects >= PYTHON_SMALL;
    if (seen == OBJECTS_ALL)
        text_print_titled(
            out, "note:", "every Python object is shown: small ones are in the heap '" HEAP_PYTHON "'");
    else if (seen == OBJECTS_UNSEEN && are_large)
        text_print_titled(out, "note:",
            "--python-objects saw none: PYTHONMALLOC or -X dev has given the interpreter another allocator");
    else if (are_large)
        text_print_titled(out, "note:",
            "of Python's objects, those over 512 bytes and the interpreter's tables are shown; "
            "--python-objects shows all");
}

void advice_print(FILE *out, const struct loaded *loaded, enum view_sort sort) {
    const struct model *model = loaded->model;
    struct tally tally = {
        .model = model, .nameless = memory_allocate((model->module_count + 1) * sizeof(double))};
    struct source_frames frames = {0};
    for (size_t i = 0; i < model->stack_count; i++) {
        const struct model_stack *stack = &model->stacks[i];
        source_frames_expand_to_site(&frames, loaded->resolver, stack);
        const struct source_frame *site = &frames.frames[source_frames_site(&frames, false)];
        if (is_nameless(site) && strcmp(site->module->path, MODULE_ANONYMOUS) == 0)
            tally.generated += view_sort_value(&stack->figures, sort);
        else if (is_nameless(site) && site->module->path[0] == '/')
            tally.nameless[first_of_file(model, site->module)] += view_sort_value(&stack->figures, sort);
        tally.interpreted |= site->symbol->interpreted;
        const struct model_module *caller = frames.frames[source_frames_innermost(&frames)].module;
        if (caller && is_python(caller->path)) {
            tally.python_bytes += stack->figures.total_bytes.value;
            tally.python_objects += stack->figures.total_objects.value;
        }
    }
    source_frames_free(&frames);
    advise_symbols(out, &tally, view_sort_value(&model->totals.sum, sort));
    advise_python(out, &tally);
    free(tally.nameless);
}
