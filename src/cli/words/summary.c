#include "cli/words/summary.h"
#include "base/memory.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"
#include "cli/words/estimate_text.h"
#include "cli/words/notes.h"
#include "model/heap_totals.h"

#include <stdlib.h>
#include <string.h>

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
    bool nearly_nothing = totals->peak.value > 0 && totals->sum.live_bytes.value < 0.05 * totals->peak.value;
    return has_ended(model) && nearly_nothing && !model->levels_only ? SORT_PEAK : SORT_LIVE;
}

#define TITLE_MOST                                                                                           \
    200 /* columns of a command line where there is no terminal, whose width counts otherwise */

/* A long command line is shortened, so that pid, state and duration fit into the line. */
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
        "  (pid %d, %s %s)", process->pid, state_text(process), units_seconds(process->duration).text);
    cleanup_text char *clean = text_clean(command ? command : "?");
    size_t room = terminal->width > text_width(about) + 8 ? terminal->width - text_width(about) : 8;
    cleanup_text char *title = text_shorten(clean, terminal->width ? room : TITLE_MOST);
    fprintf(out, "%s%s%s%s\n", terminal->bold, title, terminal->plain, about);
}

static void add_estimate(struct pieces *pieces, const char *word, struct estimate estimate) {
    cleanup_text char *text = estimate_text_bytes(estimate);
    pieces_add(pieces, "%s %s", word, text);
}

void summary_add_total(struct pieces *pieces, const struct model *model) {
    const struct totals *totals = &model->totals;
    /* The exact total is the sum of the threads' countdowns. These count malloc's heap alone, and go on while
     * recording is paused; in a damaged recording some may be missing. In these cases the estimate is shown. */
    if (model->damaged || model->was_paused || model_has_heaps(model))
        add_estimate(pieces, "total", totals->sum.total_bytes);
    else
        pieces_add(pieces, "total %s%s", totals->exact_is_complete ? "" : "at least ",
            units_bytes(totals->exact_total_bytes).text);
}

static void add_allocations(struct pieces *pieces, struct estimate count) {
    if (!(estimate_error(count) > 0)) {
        pieces_add(pieces, "%s", units_counted(count.value, "allocation").text);
        return;
    }
    cleanup_text char *text = estimate_text_count(count);
    pieces_add(pieces, "%s allocations", text);
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
        pieces_add(&pieces, "peak %s of memory", units_bytes(totals->peak.value).text);
        pieces_add(&pieces, "only its size over time was recorded, no allocations");
        pieces_end(&pieces);
        return;
    }
    add_estimate(&pieces, "live", totals->sum.live_bytes);
    cleanup_text char *peak = estimate_text_peak(totals);
    pieces_add(&pieces, model->process_count > 1 ? "sum of peaks %s" : "peak %s", peak);
    summary_add_total(&pieces, model);
    add_allocations(&pieces, totals->sum.total_objects);
    if (!model->exact)
        pieces_add(&pieces, "rate %s, %s", units_bytes((double)model->rate).text,
            units_counted((double)totals->sum.samples, "sample").text);
    else if (notes_is_whole(model))
        pieces_add(&pieces, "exact, every allocation %s",
            model->was_paused    ? "while recording was on"
            : is_attached(model) ? "since attached to"
                                 : "recorded");
    uint64_t lost_children = totals->drops[DROP_CHILD];
    if (totals->drops_total)
        pieces_add(&pieces, "%s dropped", units_count((double)totals->drops_total).text);
    else if (!lost_children)
        pieces_add(&pieces, "no drops");
    if (lost_children)
        pieces_add(
            &pieces, "%s of child processes missing", units_counted((double)lost_children, "recording").text);
    pieces_add(&pieces, "recorder %s", units_bytes((double)totals->recorder_bytes).text);
    bool is_good = health->complete >= 0.95 && health->confidence && strcmp(health->confidence, "high") == 0;
    if (totals->sum.samples && !is_good)
        pieces_add(&pieces, "stacks %s complete", units_percent(health->complete).text);
    pieces_end(&pieces);
}

void summary_print_heaps(FILE *out, const struct model *model) {
    size_t count, widest = 0;
    struct heap_totals *heaps = heap_totals_make(model, &count);
    for (size_t i = 0; i < count; i++) {
        cleanup_text char *name = text_clean(heaps[i].name);
        if (text_width(name) > widest) widest = text_width(name);
    }
    for (size_t i = 0; i < count; i++) {
        const struct figures *figures = &heaps[i].figures;
        cleanup_text char *name = text_clean(heaps[i].name);
        cleanup_text char *live = estimate_text_bytes(figures->live_bytes);
        cleanup_text char *total = estimate_text_bytes(figures->total_bytes);
        cleanup_text char *live_count = estimate_text_count(figures->live_objects);
        cleanup_text char *total_count = estimate_text_count(figures->total_objects);
        cleanup_text char *rate = heaps[i].rate == 1 ? memory_copy_text("exact")
                                                     : memory_format_text("one sample every %s on average",
                                                           units_bytes((double)heaps[i].rate).text);
        fprintf(out, "  %s%*s  %s live in %s %s, total %s in %s, %s\n", name,
            (int)(widest - text_width(name)), "", live, live_count,
            figures->live_objects.value == 1 ? "object" : "objects", total, total_count, rate);
    }
    free(heaps);
}
