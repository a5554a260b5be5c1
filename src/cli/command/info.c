#include "base/memory.h"
#include "cli/command/command.h"
#include "cli/input/load.h"
#include "cli/options/options.h"
#include "cli/terminal/message.h"
#include "cli/terminal/sheet.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"
#include "cli/words/estimate_text.h"
#include "cli/words/notes.h"
#include "cli/words/summary.h"
#include "cli/words/unrecorded_text.h"
#include "model/stack_labels.h"

#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#define IN_FULL_MOST 8 /* processes that are shown in full unless --all is given */

static const char about[] =
    "Shows everything about a recording but its stacks: the program, when it ran and how it was\n"
    "recorded, its threads with the exact bytes they allocated, and the files mapped into it with their\n"
    "build-ids.\n" SOURCE_HELP;

static const char examples[] = "  malloscope info malloscope.server.4711.mscope\n"
                               "  malloscope info 4711\n"
                               "  malloscope info r.mscope --symbols             why are there no names?";

static void print_field(const char *title, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void print_field(const char *title, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    cleanup_text char *text = text_clean_format(format, arguments);
    va_end(arguments);
    printf("  %-14s %s\n", title, text);
}

static const char *state_text(const struct model_process *process) {
    if (process->is_snapshot) return "running when this copy of its recording was made";
    if (process->attached && process->state == PROCESS_RUNNING) return "attached to now";
    if (process->attached) return "was attached to; it may have run on";
    switch (process->state) {
    case PROCESS_RUNNING:
        return "running";
    case PROCESS_FINISHED:
        return "finished";
    case PROCESS_KILLED:
        return "ended without notice: killed, or became another program by exec";
    }
    return "?";
}

static const char *filter_text(uint32_t filter) {
    switch ((enum free_filter)filter) {
    case FILTER_MARK:
        return "mark in front of sampled blocks, one compare a free";
    case FILTER_LOOKUP:
        return "blocks left as they are, found by their addresses";
    case FILTER_PROBES:
        return "attached: probes in the kernel";
    }
    return "not known";
}

static void print_time(const char *title, uint64_t nanoseconds) {
    time_t seconds = (time_t)(nanoseconds / 1000000000u);
    struct tm parts;
    char text[64] = "?";
    if (localtime_r(&seconds, &parts)) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &parts);
    print_field(title, "%s", text);
}

static void print_process(const struct model_process *process) {
    printf("process %d\n", process->pid);
    print_field("recording", "%s (%s)", process->source ? process->source : "?",
        units_bytes((double)process->file_bytes).text);
    print_field("command", "%s", process->command_line ? process->command_line : "?");
    print_field("executable", "%s", process->executable ? process->executable : "?");
    print_field("parent", "%d%s", process->parent_pid,
        process->flags & RECORDING_FORKED ? ", forked from it: began with its live blocks" : "");
    print_field("state", "%s", state_text(process));
    print_time("started", process->start_realtime);
    print_field("duration", "%s", units_seconds(process->duration).text);
    print_field("peak after", "%s", units_seconds(process->peak_seconds).text);
    print_field("allocator", "%s", process->allocator && *process->allocator ? process->allocator : "?");
    print_field("free filter", "%s", filter_text(process->filter));
    if (process->rate <= 1)
        print_field("rate", "exact");
    else
        print_field("rate", "one sample every %s on average", units_bytes((double)process->rate).text);
    print_field("recorder", "%s of memory %s", units_bytes((double)process->recorder_bytes).text,
        process->attached ? "outside the program" : "in the program");
}

static void print_threads(const struct model *model, uint32_t process) {
    printf("\n  threads\n");
    for (size_t i = 0; i < model->thread_count; i++) {
        const struct model_thread *thread = &model->threads[i];
        if (thread->process != process) continue;
        cleanup_text char *name = text_clean(thread->name);
        printf("  %10d  %-16s %s%s allocated, %s, from %s", thread->tid, name,
            thread->exact_is_complete ? "" : "at least ", units_bytes(thread->exact_bytes).text,
            units_counted((double)thread->samples, "sample").text,
            units_seconds(1e-9 * (double)thread->start_time).text);
        if (thread->end_time)
            printf(" to %s\n", units_seconds(1e-9 * (double)thread->end_time).text);
        else
            puts(thread->running ? ", running" : "");
    }
}

/* One line a mapped file. With a resolver, a second line says where its names come from. */
static void print_modules(const struct loaded *loaded, uint32_t process) {
    const struct model *model = loaded->model;
    printf("\n  mapped files\n");
    for (size_t i = 0; i < model->module_count; i++) {
        const struct model_module *module = &model->modules[i];
        if (module->process != process) continue;
        char id[2 * sizeof module->build_id + 1] = "no build-id";
        for (size_t k = 0; k < module->build_id_size && k < sizeof module->build_id; k++)
            snprintf(id + 2 * k, 3, "%02x", module->build_id[k]);
        cleanup_text char *path = text_clean(module->path);
        printf("  %012llx-%012llx  %-40s  %s%s\n", (unsigned long long)module->start,
            (unsigned long long)module->end, id, path, module->deleted ? " (deleted)" : "");
        if (!loaded->resolver) continue;
        cleanup_text char *names = text_clean(resolver_describe(loaded->resolver, module));
        printf("  %27s  %s\n", "", names);
    }
}

/* How many types, scopes and threads the program has named, if it has named any. */
static void print_names(const struct model *model) {
    struct label_counts counts;
    stack_labels_count(model, &counts);
    if (model->text_count <= model->process_count)
        return; /* the first text of each process stands for "no name" */
    print_field("names", "%s in use as types, %s as scopes, %s as threads",
        units_count((double)counts.types).text, units_count((double)counts.scopes).text,
        units_count((double)counts.threads).text);
}

/* One line a program, since each has another reason. */
static void print_unrecorded(const struct unrecorded_list *unrecorded) {
    for (size_t i = 0; i < unrecorded->count; i++) {
        const struct unrecorded *program = &unrecorded->list[i];
        print_field("not recorded", "%s started or became, %s: %s",
            units_counted((double)program->count, "time").text, unrecorded_text_reason(program->reason),
            program->path);
    }
    if (unrecorded->others)
        print_field("not recorded", "%s of other programs, for whose names there was no room",
            units_counted((double)unrecorded->others, "start").text);
}

static void print_tables(const struct model *model) {
    const struct totals *totals = &model->totals;
    printf("tables\n");
    print_field("stacks", "%s, %.1f frames on average", units_count((double)model->stack_count).text,
        model->health.mean_depth);
    print_field("complete", "%s of the samples, %s not; confidence %s",
        units_percent(model->health.complete).text, units_count((double)model->health.truncated).text,
        model->health.confidence ? model->health.confidence : "?");
    if (model->health.folded)
        print_field("folded",
            "%s of the samples: their stacks lack middle frames, since the recording was nearly full",
            units_count((double)model->health.folded).text);
    print_field("samples", "%s, %s of them live", units_count((double)totals->sum.samples).text,
        units_count((double)totals->sum.live_samples).text);
    print_field("threads", "%s", units_count((double)model->thread_count).text);
    print_field("mapped files", "%s", units_count((double)model->module_count).text);
    print_names(model);
    cleanup_text char *older = notes_older_frees(model);
    if (older)
        print_field("older frees", "%s", older);
    else if (totals->unknown_frees)
        print_field("unknown frees",
            "%s, of blocks that were allocated before the recording began, or never reported",
            units_count((double)totals->unknown_frees).text);
    print_unrecorded(&model->unrecorded);
    if (!totals->drops_total && !totals->drops[DROP_CHILD]) print_field("drops", "none");
    for (int i = 0; i < DROP_KINDS; i++)
        if (totals->drops[i])
            print_field("dropped", "%s %s", units_count((double)totals->drops[i]).text,
                notes_drop_text((enum drop)i));
}

/* One line a process, for many of them. */
static void print_process_table(const struct model *model) {
    struct figures *sums = memory_allocate_array(model->process_count, sizeof *sums);
    for (size_t i = 0; i < model->process_count; i++) figures_clear(&sums[i]);
    for (size_t i = 0; i < model->stack_count; i++)
        figures_add(&sums[model->stacks[i].process], &model->stacks[i].figures);
    static const char *const titles[] = {"PID", "PARENT", "SECONDS", "LIVE", "PEAK", "TOTAL", "SAMPLES"};
    static const int ranks[] = {0, 3, 1, 0, 0, 0, 2};
    struct sheet sheet;
    sheet_start(&sheet, terminal_of(stdout), "COMMAND");
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) sheet_add_column(&sheet, titles[i], ranks[i]);
    for (size_t i = 0; i < model->process_count; i++) {
        const struct model_process *process = &model->processes[i];
        struct sheet_row *row = sheet_add_row(&sheet);
        row->cells[0] = memory_format_text("%d", process->pid);
        row->cells[1] = memory_format_text("%d", process->parent_pid);
        row->cells[2] = memory_copy_text(units_seconds(process->duration).text);
        row->cells[3] = estimate_text_bytes(sums[i].live_bytes);
        row->cells[4] = estimate_text_bytes(process->peak);
        row->cells[5] = estimate_text_bytes(sums[i].total_bytes);
        row->cells[6] = memory_copy_text(units_count((double)sums[i].samples).text);
        row->last.name = text_clean(process->command_line ? process->command_line : "?");
    }
    sheet_fit(&sheet);
    putchar('\n');
    sheet_print_titles(&sheet);
    for (size_t i = 0; i < sheet.row_count; i++) sheet_print_row(&sheet, i);
    sheet_free(&sheet);
    free(sums);
    puts("--all shows threads and mapped files of each");
}

int command_info(int argc, char **argv) {
    bool symbols = false, all = false;
    struct load_options load_options = {0};
    struct option_rule rules[] = {
        {0, "symbols", OPTION_ON, &symbols, NULL,
            .help = "under each mapped file, what names it has and which file\nthey are read from"},
        {'a', "all", OPTION_ON, &all, NULL,
            .help = "everything of every process, however many there are; without\nit, more than 8 have one "
                    "line each"},
        LOAD_RULES(load_options),
    };
    struct command_line line = {.name = "info",
        .usage = "malloscope info [OPTION]... FILE|PID...",
        OPTIONS_TABLE(rules, about, examples),
        ARGUMENTS_SOURCES};
    int code;
    if (!options_begin(&line, argc, argv, &code)) return code;
    struct loaded loaded;
    code = load_sources(
        line.arguments, line.argument_count, symbols || load_options.sysroot ? &load_options : NULL, &loaded);
    if (code) return code;
    const struct model *model = loaded.model;
    summary_print(stdout, model);
    notes_print(stdout, model, SORT_LIVE);
    putchar('\n');
    print_tables(model);
    if (model_has_heaps(model)) {
        puts("\nheaps");
        summary_print_heaps(stdout, model);
    }
    bool in_full = all || symbols || model->process_count <= IN_FULL_MOST;
    if (!in_full) print_process_table(model);
    for (size_t i = 0; i < model->process_count && in_full; i++) {
        putchar('\n');
        print_process(&model->processes[i]);
        print_threads(model, (uint32_t)i);
        print_modules(&loaded, (uint32_t)i);
    }
    return load_finish(&loaded);
}
