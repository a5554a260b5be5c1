#include "cli/words/summary.h"
#include "base/memory.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"
#include "format/utf8.h"
#include "model/stack_labels.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define FEW_SAMPLES 100

void pieces_add(struct pieces *pieces, const char *format, ...) {
    char *raw = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&raw, format, arguments);
    va_end(arguments);
    if (length < 0) memory_is_short();
    cleanup_text char *clean = text_clean(raw);
    free(raw);
    size_t room = pieces->width > strlen(pieces->indent) + 8 ? pieces->width - strlen(pieces->indent) : 8;
    cleanup_text char *text = pieces->width ? text_shorten(clean, room) : memory_copy_text(clean);
    size_t width = text_width(text);
    const char *separator = pieces->used ? glyphs()->dot : "";
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

void summary_wrap(FILE *out, const char *title, const char *text) {
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

const char *summary_drop_text(enum drop drop) {
    switch (drop) {
    case DROP_LIVE_TABLE:
        return "live samples, for which the table had no room";
    case DROP_STACK_TABLE:
        return "samples of new stacks, for which the table had no room: see [dropped]";
    case DROP_THREAD:
        return "threads without a record: their allocations are missing";
    case DROP_SCRATCH:
        return "samples taken while all capture buffers were busy";
    case DROP_MODULE:
        return "mapped files that could not be noted: their frames have no names";
    case DROP_ADDRESS:
        return "samples at addresses above 48 bits";
    case DROP_RING:
        return "samples that came faster than they could be taken from the kernel";
    case DROP_TRACKED:
        return "samples for which the kernel's table of tracked blocks had no room";
    case DROP_CALL:
        return "allocations whose return from the allocator was not seen";
    case DROP_NAME:
        return "names of scopes, types, heaps or Python functions, for which the table had no room";
    case DROP_INHERITED:
        return "blocks of the parent process, which may be live in this one and are missing";
    case DROP_CHILD:
        return "child processes, for which no recording could be made";
    case DROP_KINDS:
        break;
    }
    return "";
}

static const char *state_text(const struct model_process *process) {
    if (process->is_snapshot) return "copied while it ran, after";
    switch (process->state) {
    case PROCESS_RUNNING:
        return process->attached ? "attached to for" : "running for";
    case PROCESS_FINISHED:
        return process->attached ? "attached to for" : "finished after";
    case PROCESS_KILLED:
        return process->attached ? "attached to, until malloscope ended without notice after"
                                 : "ended without notice after";
    }
    return "";
}

const char *summary_live_word(const struct model *model) {
    if (model->process_count == 0) return "live";
    enum process_state state = model->processes[0].state;
    bool is_snapshot = model->processes[0].is_snapshot;
    for (size_t i = 1; i < model->process_count; i++)
        if (model->processes[i].state != state || model->processes[i].is_snapshot != is_snapshot)
            return "live";
    if (is_snapshot) return "live when the copy was made";
    switch (state) {
    case PROCESS_RUNNING:
        return "live now";
    case PROCESS_FINISHED:
        return model->processes[0].attached ? "allocated since the attach and live at its end"
                                            : "still allocated at exit";
    case PROCESS_KILLED:
        return "live when the program ended";
    }
    return "live";
}

static bool has_ended(const struct model *model) {
    for (size_t i = 0; i < model->process_count; i++)
        if (model->processes[i].state == PROCESS_RUNNING || model->processes[i].is_snapshot) return false;
    return true;
}

enum view_sort summary_default_sort(const struct model *model) {
    const struct totals *totals = &model->totals;
    bool nearly_nothing = totals->peak_bytes > 0 && totals->sum.live_bytes.value < 0.05 * totals->peak_bytes;
    return has_ended(model) && nearly_nothing && !model->levels_only ? SORT_PEAK : SORT_LIVE;
}

void summary_print_order(FILE *out, const char *what) {
    cleanup_text char *text =
        memory_format_text("nearly nothing was live at the end, so this shows %s; '--sort live' "
                           "shows what was",
            what);
    summary_wrap(out, "note:", text);
}

/* The command line may be long: it is shortened, what is said about it is not. */
static void print_title(FILE *out, const struct model *model, const struct terminal *terminal) {
    if (model->process_count != 1) {
        fprintf(out, "%s%zu processes, their figures added up%s\n", terminal->bold, model->process_count,
            terminal->plain);
        return;
    }
    const struct model_process *process = &model->processes[0];
    const char *command =
        process->command_line && *process->command_line ? process->command_line : process->executable;
    cleanup_text char *about = memory_format_text(
        "  (pid %d, %s %s)", process->pid, state_text(process), seconds_text(process->duration).text);
    cleanup_text char *clean = text_clean(command ? command : "?");
    size_t room = terminal->width > text_width(about) + 8 ? terminal->width - text_width(about) : 8;
    cleanup_text char *title = terminal->width ? text_shorten(clean, room) : memory_copy_text(clean);
    fprintf(out, "%s%s%s%s\n", terminal->bold, title, terminal->plain, about);
}

/* Nothing sampled has no spread that could be told. */
static void add_estimate(struct pieces *pieces, const char *word, struct estimate estimate) {
    if (estimate_error(estimate) <= 0)
        pieces_add(pieces, "%s %s", word, bytes_text(estimate.value).text);
    else
        pieces_add(pieces, "%s %s %s %s", word, bytes_text(estimate.value).text, glyphs()->plus_minus,
            bytes_text(estimate_error(estimate)).text);
}

void summary_add_total(struct pieces *pieces, const struct model *model) {
    const struct totals *totals = &model->totals;
    /* The threads' own counters know nothing of heaps that are not malloc's, nor whether recording was on;
     * where the recording is damaged they may be what is missing. */
    if (model->damaged || model->was_paused || model_has_heaps(model))
        add_estimate(pieces, "total", totals->sum.total_bytes);
    else
        pieces_add(pieces, "total %s%s", totals->exact_is_complete ? "" : "at least ",
            bytes_text(totals->exact_total_bytes).text);
}

static bool is_attached(const struct model *model) {
    for (size_t i = 0; i < model->process_count; i++)
        if (model->processes[i].attached) return true;
    return false;
}

void summary_print(FILE *out, const struct model *model) {
    struct terminal terminal = terminal_of(out);
    const struct totals *totals = &model->totals;
    const struct health *health = &model->health;
    print_title(out, model, &terminal);
    struct pieces pieces = {.out = out, .width = terminal.width, .indent = ""};
    if (model->levels_only) {
        pieces_add(&pieces, "peak %s of memory", bytes_text(totals->peak_bytes).text);
        pieces_add(&pieces, "only its size over time was recorded, no allocations");
        pieces_end(&pieces);
        return;
    }
    add_estimate(&pieces, "live", totals->sum.live_bytes);
    pieces_add(&pieces, model->process_count > 1 ? "sum of peaks %s" : "peak %s",
        bytes_text(totals->peak_bytes).text);
    summary_add_total(&pieces, model);
    pieces_add(&pieces, "%s", counted_text(totals->sum.total_objects.value, "allocation").text);
    if (!model->exact)
        pieces_add(&pieces, "rate %s, %s", bytes_text((double)model->rate).text,
            counted_text((double)totals->sum.samples, "sample").text);
    else if (!summary_is_incomplete(model))
        pieces_add(&pieces, "exact, every allocation %s",
            model->was_paused    ? "while recording was on"
            : is_attached(model) ? "since attached to"
                                 : "recorded");
    if (totals->drops_total)
        pieces_add(&pieces, "%s dropped", count_text((double)totals->drops_total).text);
    else
        pieces_add(&pieces, "no drops");
    pieces_add(&pieces, "recorder %s", bytes_text((double)totals->recorder_bytes).text);
    bool is_good = health->complete >= 0.95 && health->confidence && strcmp(health->confidence, "high") == 0;
    if (totals->sum.samples && !is_good)
        pieces_add(&pieces, "stacks %s complete", percent_text(health->complete).text);
    pieces_end(&pieces);
}

static char *estimate_text(struct estimate estimate) {
    if (estimate_error(estimate) <= 0) return memory_copy_text(bytes_text(estimate.value).text);
    return memory_format_text("%s %s %s", bytes_text(estimate.value).text, glyphs()->plus_minus,
        bytes_text(estimate_error(estimate)).text);
}

void summary_print_heaps(FILE *out, const struct model *model) {
    size_t count, widest = 0;
    struct heap_totals *heaps = model_heap_totals(model, &count);
    if (!heaps) memory_is_short();
    for (size_t i = 0; i < count; i++) {
        cleanup_text char *name = text_clean(heaps[i].name);
        if (text_width(name) > widest) widest = text_width(name);
    }
    for (size_t i = 0; i < count; i++) {
        const struct figures *figures = &heaps[i].figures;
        cleanup_text char *name = text_clean(heaps[i].name);
        cleanup_text char *live = estimate_text(figures->live_bytes);
        cleanup_text char *total = estimate_text(figures->total_bytes);
        cleanup_text char *rate = heaps[i].rate == 1 ? memory_copy_text("exact")
                                                     : memory_format_text("one sample every %s on average",
                                                           bytes_text((double)heaps[i].rate).text);
        fprintf(out, "  %s%*s  %s live in %s, total %s in %s, %s\n", name, (int)(widest - text_width(name)),
            "", live, counted_text(figures->live_objects.value, "object").text, total,
            count_text(figures->total_objects.value).text, rate);
    }
    free(heaps);
}

/* The drops that lose allocations; others only lose names. */
static const struct {
    enum drop drop;
    const char *reason, *remedy;
} losses[] = {
    {DROP_LIVE_TABLE, "live table full", ": raise --max-size"},
    {DROP_THREAD, "thread table full", ": raise --max-size"},
    {DROP_SCRATCH, "all capture buffers busy", ""},
    {DROP_ADDRESS, "addresses above 48 bits", ""},
    {DROP_RING, "events came too fast", ": raise --rate or --ring"},
    {DROP_TRACKED, "too many blocks tracked at once", ": raise --rate or --blocks"},
    {DROP_CALL, "returns not seen", ""},
    {DROP_INHERITED, "inherited blocks not taken over", ""},
};

static bool has_losses(const struct model *model) {
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        if (model->totals.drops[losses[i].drop]) return true;
    return false;
}

bool summary_is_incomplete(const struct model *model) {
    return model->is_partial || has_losses(model);
}

/* The share of the bytes is known of exact recordings, whose threads count what is dropped as well; of others
 * the share of the samples. */
static void note_incomplete(FILE *out, const struct model *model) {
    if (model->is_partial)
        summary_wrap(out, "INCOMPLETE:",
            "allocations may be missing (not every allocation function could be probed): 'malloscope attach "
            "--plan' says which");
    if (!has_losses(model)) return;
    const struct totals *totals = &model->totals;
    size_t largest = 0;
    double lost = 0;
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        if (totals->drops[losses[i].drop] > totals->drops[losses[largest].drop]) largest = i;
        if (losses[i].drop != DROP_THREAD) lost += (double)totals->drops[losses[i].drop];
    }
    double share = 0;
    if (!model->exact && lost > 0)
        share = lost / (lost + (double)totals->sum.samples);
    else if (model->exact && totals->exact_total_bytes > 0 && !model_has_heaps(model))
        share = 1 - totals->sum.total_bytes.value / totals->exact_total_bytes;
    cleanup_text char *amount = share > 0 ? memory_format_text("%s of the %s are", percent_text(share).text,
                                                model->exact ? "bytes allocated" : "samples")
                                          : memory_copy_text("allocations are");
    cleanup_text char *text =
        memory_format_text("%s missing (%s)%s", amount, losses[largest].reason, losses[largest].remedy);
    summary_wrap(out, "INCOMPLETE:", text);
}

/* The rate that would have given about a thousand samples, as an option; a power of two. */
static void suggest_rate(char *option, size_t size, double bytes) {
    double rate = bytes > 0 ? exp2(floor(log2(bytes / 1000))) : 0;
    if (rate >= 1024)
        snprintf(option, size, "--rate %s", bytes_text_short(rate).text);
    else
        snprintf(option, size, "--exact");
    char *point = strchr(option, '.'); /* "8.00K" */
    if (point)
        memmove(point, point + 1 + strspn(point + 1, "0"), strlen(point + 1 + strspn(point + 1, "0")) + 1);
}

static void note_samples(FILE *out, const struct model *model, enum view_sort sort) {
    const struct figures *sum = &model->totals.sum;
    bool live_alone = sum->samples >= FEW_SAMPLES;
    if (model->exact ||
        (live_alone && (sort != SORT_LIVE || sum->live_samples >= FEW_SAMPLES || !sum->live_samples)))
        return;
    char option[48];
    suggest_rate(option, sizeof option, live_alone ? sum->live_bytes.value : model->totals.exact_total_bytes);
    uint64_t samples = live_alone ? sum->live_samples : sum->samples;
    if (samples == 0) {
        cleanup_text char *amount = model->totals.exact_is_complete
                                        ? memory_format_text(", as the program allocated only %s",
                                              bytes_text(model->totals.exact_total_bytes).text)
                                        : memory_copy_text("");
        cleanup_text char *text = memory_format_text("nothing was sampled%s; '%s' would show it", amount,
            model->totals.exact_is_complete ? option : "--exact");
        summary_wrap(out, "note:", text);
        return;
    }
    cleanup_text char *text =
        memory_format_text("%s on only %s, so take them as rough; '%s' would give a finer picture",
            live_alone ? "the live figures rest" : "all figures rest",
            counted_text((double)samples, "sample").text, option);
    summary_wrap(out, "note:", text);
}

void summary_print_notes(FILE *out, const struct model *model, enum view_sort sort) {
    if (model->levels_only) return;
    note_incomplete(out, model);
    note_samples(out, model, sort);
    for (int i = 0; i < DROP_KINDS; i++) {
        if (!model->totals.drops[i]) continue;
        cleanup_text char *text = memory_format_text("dropped %s %s",
            count_text((double)model->totals.drops[i]).text, summary_drop_text((enum drop)i));
        summary_wrap(out, "note:", text);
    }
    if (model->totals.sum.inherited_bytes > 0) {
        cleanup_text char *text = memory_format_text(
            "%s were inherited at the fork: they are in LIVE and PEAK, not in TOTAL and COUNT",
            bytes_text(model->totals.sum.inherited_bytes).text);
        summary_wrap(out, "note:", text);
    }
    /* Only drops make it worth a word. */
    for (size_t i = 0; i < model->process_count && model->totals.drops_total; i++)
        if (model->processes[i].flags & RECORDING_NO_GROWTH) {
            summary_wrap(out, "note:",
                "the recording could not grow any more: its limit (--max-size) was reached, the disk was "
                "full, its file was deleted, or the program forbade itself system calls (seccomp)");
            break;
        }
    const struct health *health = &model->health;
    if (health->confidence && strcmp(health->confidence, "low") == 0 && model->totals.sum.samples) {
        cleanup_text char *text =
            memory_format_text("%s of the stacks do not reach the start of their thread: "
                               "callers far from the allocation may be missing",
                percent_text(1 - health->complete).text);
        summary_wrap(out, "note:", text);
    }
}
