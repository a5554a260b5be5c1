#include "cli/words/notes.h"
#include "base/confidence_interval.h"
#include "base/memory.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *notes_drop_text(enum drop drop) {
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

void notes_print_order(FILE *out, const char *what) {
    cleanup_text char *text =
        memory_format_text("nearly nothing was live at the end, so this shows %s; '--sort live' "
                           "shows what was",
            what);
    text_print_titled(out, "note:", text);
}

/* The kinds of drops by which allocations are lost. By the other kinds only names or stacks are. */
static const struct {
    enum drop drop;
    const char *reason;
    const char *remedy; /* NULL: room in the recording */
} losses[] = {
    {DROP_LIVE_TABLE, "live table full", NULL},
    {DROP_THREAD, "thread table full", NULL},
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

bool notes_incomplete(const struct model *model) {
    return model->is_partial || model->is_late || has_losses(model);
}

bool notes_is_whole(const struct model *model) {
    return !notes_incomplete(model) && !model->totals.drops[DROP_CHILD];
}

/* Why a recording had no more room, and what gives it more. */
struct room {
    const char *reason, *remedy;
};

static struct room room_by_error(int error) {
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return (struct room){
            "the disk was full", ": free some space, or record to a disk that has more (-o)"};
    case EFBIG:
        return (struct room){"the program limits the size of its files", ": raise the limit (ulimit -f)"};
    case ENOENT:
    case ESTALE:
        return (struct room){"its file was deleted or replaced", ": keep it while the program runs"};
    case EPERM:
        return (struct room){"the program forbade itself system calls (seccomp)", ": use a coarser --rate"};
    case EACCES:
    case EROFS:
        return (struct room){"the program may not open its file any more", ": use a coarser --rate"};
    default:
        return (struct room){"the disk was full, its file was deleted, or the program forbade itself system "
                             "calls (seccomp)",
            ": see why the recording could not grow"};
    }
}

/* The reason of the first recording that could not grow; if all could, it was their limit. */
static struct room room_of(const struct model *model) {
    for (size_t i = 0; i < model->process_count; i++)
        if (model->processes[i].flags & RECORDING_NO_GROWTH)
            return room_by_error(model->processes[i].growth_error);
    return (struct room){"its limit was reached", ": raise --max-size"};
}

/* How much is missing: in exact recordings the share of the bytes, since each thread also counts the bytes of
 * allocations that are dropped; in sampled recordings the share of the samples. */
static void note_incomplete(FILE *out, const struct model *model) {
    if (model->is_partial)
        text_print_titled(out, "INCOMPLETE:",
            "allocations may be missing (not every allocation function could be probed): 'malloscope attach "
            "--plan' says which");
    if (model->is_late)
        text_print_titled(out, "INCOMPLETE:",
            "what a program allocated right after its start is missing (it was started by a process that was "
            "attached to, and had run before probes were in it): 'malloscope run' sees it all");
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
    cleanup_text char *amount = share > 0 ? memory_format_text("%s of the %s are", units_percent(share).text,
                                                model->exact ? "bytes allocated" : "samples")
                                          : memory_copy_text("allocations are");
    const char *remedy = losses[largest].remedy;
    cleanup_text char *text = memory_format_text(
        "%s missing (%s)%s", amount, losses[largest].reason, remedy ? remedy : room_of(model).remedy);
    text_print_titled(out, "INCOMPLETE:", text);
}

/* The option by which `bytes` would have given about 1,000 samples: --rate with a power of two, or --exact. Few large
 * blocks are few samples at any rate; so that it is finer than it was, the rate is at most an eighth of `former`. */
static void suggest_rate(char *option, size_t size, double bytes, uint64_t former) {
    double wanted = fmin(bytes / 1000, (double)former / 8);
    double rate = wanted > 0 ? exp2(floor(log2(wanted))) : 0;
    if (rate >= 1024)
        snprintf(option, size, "--rate %s", units_bytes_short(rate).text);
    else
        snprintf(option, size, "--exact");
    char *point = strchr(option, '.'); /* "8.00K" becomes "8K" */
    if (point)
        memmove(point, point + 1 + strspn(point + 1, "0"), strlen(point + 1 + strspn(point + 1, "0")) + 1);
}

/* Whether the live figures alone rest on few samples, and not all. */
static bool is_live_alone(const struct figures *sum) {
    return sum->samples >= FEW_SAMPLES;
}

static bool is_rough(const struct model *model, const struct figures *sum, enum view_sort sort) {
    if (model->exact) return false;
    return !is_live_alone(sum) || (sort == SORT_LIVE && sum->live_samples < FEW_SAMPLES && sum->live_samples);
}

static void say_rough(
    FILE *out, const struct model *model, const struct figures *sum, const char *what, double bytes) {
    char option[48];
    suggest_rate(option, sizeof option, bytes, model->rate);
    cleanup_text char *text =
        memory_format_text("%s on only %s, so take them as rough; '%s' would give a finer picture", what,
            units_counted((double)(is_live_alone(sum) ? sum->live_samples : sum->samples), "sample").text,
            option);
    text_print_titled(out, "note:", text);
}

void notes_print_samples(
    FILE *out, const struct model *model, const struct figures *sum, const char *what, enum view_sort sort) {
    if (!is_rough(model, sum, sort)) return;
    bool live_alone = is_live_alone(sum);
    cleanup_text char *words =
        memory_format_text("%s %s", live_alone ? "the live figures of" : "the figures of", what);
    say_rough(out, model, sum, words, live_alone ? sum->live_bytes.value : sum->total_bytes.value);
}

static void note_samples(FILE *out, const struct model *model, enum view_sort sort) {
    const struct figures *sum = &model->totals.sum;
    if (!is_rough(model, sum, sort)) return;
    if (sum->samples == 0) {
        char option[48];
        suggest_rate(option, sizeof option, model->totals.exact_total_bytes, model->rate);
        cleanup_text char *amount = model->totals.exact_is_complete
                                        ? memory_format_text(", as the program allocated only %s",
                                              units_bytes(model->totals.exact_total_bytes).text)
                                        : memory_copy_text("");
        cleanup_text char *text = memory_format_text("nothing was sampled%s; '%s' would show it", amount,
            model->totals.exact_is_complete ? option : "--exact");
        text_print_titled(out, "note:", text);
        return;
    }
    bool live_alone = is_live_alone(sum);
    say_rough(out, model, sum, live_alone ? "the live figures rest" : "all figures rest",
        live_alone ? sum->live_bytes.value : model->totals.exact_total_bytes);
}

/* The total is counted, where malloc's is the only heap, and live and peak are estimated: by chance these may seem to
 * be more than was ever allocated. */
static void note_contradiction(FILE *out, const struct model *model) {
    const struct totals *totals = &model->totals;
    if (model->exact || !totals->exact_is_complete || model_has_heaps(model) || model->was_paused) return;
    if (totals->peak.value <= totals->exact_total_bytes + totals->sum.inherited_bytes) return;
    text_print_titled(out, "note:",
        "live and peak are estimates, and seem by chance to be more than the total, which is counted: the "
        "truth is "
        "below the total");
}

/* What ended processes left is added up, though it was never there together. */
static void note_processes(FILE *out, const struct model *model) {
    size_t at_once = model->totals.processes_at_once;
    if (at_once >= model->process_count) return;
    cleanup_text char *text =
        memory_format_text("at most %zu of the %zu processes ran at the same time: what is live, "
                           "leaks and peaks are sums of what each had by itself; 'malloscope "
                           "report --by process' tells them apart",
            at_once, model->process_count);
    text_print_titled(out, "note:", text);
}

char *notes_older_frees(const struct model *model) {
    static const char what[] = "of the frees were of blocks that were allocated before it was attached to";
    const struct totals *totals = &model->totals;
    double all = (double)totals->frees, older = totals->older_frees.value;
    if (!totals->frees) return NULL;
    if (model->exact)
        return older > 0 ? memory_format_text("%s, %s, %s%s", units_percent(older / all).text,
                               units_count(older).text, what, notes_incomplete(model) ? ", or were lost" : "")
                         : NULL;
    double error = CONFIDENCE_INTERVAL_DEVIATIONS * confidence_interval_root(totals->older_frees.variance);
    if (older > error)
        return memory_format_text("about %s %s %s %s", units_percent(fmin(1, older / all)).text,
            terminal_glyphs()->plus_minus, units_percent(error / all).text, what);
    return memory_format_text("at most %s %s", units_percent(fmin(1, (older + error) / all)).text, what);
}

/* What no room means for stacks and samples. A recording that could not grow is worth a note only if something was
 * dropped or shortened for that. */
static void note_room(FILE *out, const struct model *model) {
    const struct totals *totals = &model->totals;
    uint64_t folded = model->health.folded;
    bool is_full = folded || totals->drops[DROP_LIVE_TABLE] || totals->drops[DROP_STACK_TABLE];
    for (size_t i = 0; i < model->process_count && totals->drops_total; i++)
        is_full = is_full || model->processes[i].flags & RECORDING_NO_GROWTH;
    if (!is_full) return;
    struct room room = room_of(model);
    if (folded) {
        double share = (double)folded / (double)totals->sum.samples;
        cleanup_text char *text = memory_format_text(
            "%s of the samples have stacks without their middle frames, since the recording was nearly full",
            units_percent(share).text);
        text_print_titled(out, "note:", text);
    }
    cleanup_text char *text =
        memory_format_text("the recording could not grow any more, as %s%s", room.reason, room.remedy);
    text_print_titled(out, "note:", text);
}

void notes_print(FILE *out, const struct model *model, enum view_sort sort) {
    if (model->levels_only) return;
    note_processes(out, model);
    note_incomplete(out, model);
    note_samples(out, model, sort);
    cleanup_text char *older = notes_older_frees(model);
    if (older) text_print_titled(out, "note:", older);
    note_contradiction(out, model);
    for (int i = 0; i < DROP_KINDS; i++) {
        if (!model->totals.drops[i]) continue;
        cleanup_text char *text = memory_format_text(
            "dropped %s %s", units_count((double)model->totals.drops[i]).text, notes_drop_text((enum drop)i));
        text_print_titled(out, "note:", text);
    }
    if (model->totals.sum.inherited_bytes > 0) {
        cleanup_text char *text = memory_format_text(
            "%s were inherited at the fork: they are in LIVE and PEAK, not in TOTAL and COUNT",
            units_bytes(model->totals.sum.inherited_bytes).text);
        text_print_titled(out, "note:", text);
    }
    note_room(out, model);
    const struct health *health = &model->health;
    if (health->confidence && strcmp(health->confidence, "low") == 0 && model->totals.sum.samples) {
        cleanup_text char *text =
            memory_format_text("%s of the stacks do not reach the start of their thread: "
                               "callers far from the allocation may be missing",
                units_percent(1 - health->complete).text);
        text_print_titled(out, "note:", text);
    }
}
