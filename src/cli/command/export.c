#include "base/memory.h"
#include "cli/command/command.h"
#include "cli/input/load.h"
#include "cli/options/options.h"
#include "cli/output/output_file.h"
#include "cli/output/page.h"
#include "cli/terminal/message.h"
#include "format/heap_dump.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct export {
    int format_number, value; /* indices into format_list, format_value_names */
    struct output_options output;
    const struct format *format;
    uint64_t threshold;
    bool full, with_source;
    struct load_options load_options;
};

/* What an export writes: all recordings added up, or, for formats that keep them apart, each by itself. */
struct batch {
    struct loaded *loaded;
    struct format_input *inputs; /* linked by `next` */
    size_t count;
};

static const char examples[] =
    "  malloscope export r.mscope --format pprof -o heap.pb.gz && pprof -top heap.pb.gz\n"
    "  malloscope export 4711 --format collapsed --value total | flamegraph.pl > flame.svg\n"
    "  malloscope export r.mscope --format speedscope\n"
    "  malloscope export at-1.mscope at-2.mscope --format chrome -o heap.trace.json";

/* The text of --help, with a list of the formats that there are. */
static char *about(void) {
    size_t count;
    const struct format *formats = format_list(&count);
    char *text = memory_copy_text(
        "Writes a recording in a format of another tool.\n" SOURCE_HELP "\n\n"
        "Text goes to stdout, and so does everything when stdout is a file or a pipe. On a terminal pprof,\n"
        "speedscope, chrome, json and html go to a file named after the recording. '-o -' means stdout.\n\n"
        "The chrome formats keep several FILEs apart: recordings or dumps of one program are heap dumps at\n"
        "different moments of one trace. The peak of the heap is a dump of its own.\n\n"
        "formats:\n");
    for (size_t i = 0; i < count; i++) {
        char *longer = memory_format_text(
            "%s  %-12s %s%s", text, formats[i].name, formats[i].summary, i + 1 < count ? "\n" : "");
        free(text);
        text = longer;
    }
    return text;
}

/* The names of the formats, as choices of an option. The caller frees the array, not the names. */
static const char **format_names(void) {
    size_t count;
    const struct format *formats = format_list(&count);
    const char **names = memory_allocate((count + 1) * sizeof *names); /* the last is NULL */
    for (size_t i = 0; i < count; i++) names[i] = formats[i].name;
    return names;
}

static int load_batch(const struct export *export, char **sources, size_t count, struct batch *ret_batch) {
    bool apart = export->format->kind == FORMAT_TRACE;
    size_t wanted = apart ? count : 1;
    struct batch batch = {.loaded = memory_allocate(wanted * sizeof *batch.loaded),
        .inputs = memory_allocate(wanted * sizeof *batch.inputs)};
    int code = 0;
    for (; batch.count < wanted; batch.count++) {
        struct loaded *loaded = &batch.loaded[batch.count];
        code = load_sources(sources + batch.count, apart ? 1 : count, &export->load_options, loaded);
        if (code) break;
        batch.inputs[batch.count] = (struct format_input){loaded->model, loaded->resolver,
            (enum value_kind) export->value, export->threshold, NULL, NULL, export->full};
        if (batch.count) batch.inputs[batch.count - 1].next = &batch.inputs[batch.count];
    }
    *ret_batch = batch;
    return code;
}

static int finish_batch(struct batch *batch) {
    int code = 0;
    for (size_t i = 0; i < batch->count; i++) {
        int end = load_finish(&batch->loaded[i]);
        if (!code) code = end;
    }
    free(batch->loaded);
    free(batch->inputs);
    return code;
}

int command_export(int argc, char **argv) {
    struct export export = {.value = VALUE_LIVE, .threshold = HEAP_DUMP_THRESHOLD};
    const char **names = format_names();
    bool format_given = false;
    struct option_rule rules[] = {
        {'F', "format", OPTION_CHOICE, &export.format_number, "FORMAT", .ret_given = &format_given,
            .help = "what to write (needed):", .choices = names},
        {0, "value", OPTION_CHOICE, &export.value, "VALUE",
            .help = "the figure for formats that hold one: live bytes (default),\nbytes at the peak, total "
                    "bytes or live objects:",
            .choices = format_value_names},
        {0, "threshold", OPTION_SIZE, &export.threshold, "SIZE",
            .help =
                "for chrome: stacks that hold less go into the long tail of what\ncalled them (default 1K; 0 "
                "keeps all)"},
        {0, "samples", OPTION_ON, &export.load_options.samples, NULL,
            .help = "for json: every sample that is live, too, with its address"},
        {0, "full", OPTION_ON, &export.full, NULL,
            .help = "tell command lines, which may hold passwords, and in html the\nprocess and whole paths"},
        {0, "source", OPTION_ON, &export.with_source, NULL,
            .help =
                "for html: show lines of source files also if another user's\nprogram was recorded: of those "
                "that this user may read"},
        OUTPUT_RULES(export.output),
        LOAD_RULES(export.load_options),
    };
    cleanup_text char *text = about();
    struct command_line line = {.name = "export",
        .usage = "malloscope export [OPTION]... FILE|PID... --format FORMAT",
        OPTIONS_TABLE(rules, text, examples),
        ARGUMENTS_SOURCES};
    int code;
    bool goes_on = options_begin(&line, argc, argv, &code);
    free(names);
    if (!goes_on) return code;
    if (!format_given)
        return message_error(
            PROBLEM_USAGE, "'malloscope export --help' lists the formats", "'export' needs --format");
    size_t format_count;
    export.format = &format_list(&format_count)[export.format_number];
    if (export.load_options.samples && strcmp(export.format->name, "json") != 0)
        return message_error(PROBLEM_USAGE, "leave it out, or choose --format json",
            "--samples has no place in the format '%s'", export.format->name);

    if (export.format->kind == FORMAT_BINARY && output_file_is_stdout(&export.output, export.format) &&
        isatty(STDOUT_FILENO))
        return message_error(PROBLEM_USAGE, "write it to a file with -o FILE",
            "%s is not text for a terminal", export.format->name);
    struct batch batch;
    code = load_batch(&export, line.arguments, line.argument_count, &batch);
    if (!code) {
        struct page_options page = {
            .nodes_max = PAGE_NODES, .sysroot = export.load_options.sysroot, .full = export.full};
        bool is_page = strcmp(export.format->name, "html") == 0;
        cleanup_text char *notes = is_page ? page_notes(batch.loaded) : NULL;
        page.notes = notes;
        if (is_page) {
            page_choose_sources(&page, export.with_source, export.output.quiet, batch.loaded->model, NULL);
            batch.inputs->page = &page;
        }
        code = output_file_write(
            &export.output, export.format, batch.inputs, line.arguments, line.argument_count);
    }
    int end = finish_batch(&batch);
    return code ? code : end;
}
