#include "format/machine_output.h"

#include "base/confidence_interval.h"
#include "format/utf8.h"
#include "model/heap_totals.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The figures of a row or a stack. JSON and CSV are both written from this list, so that they have the same fields.
 * The names, and the order up to `samples`, are promised to scripts. peak_* and at_peak_* are the same figures: what
 * the row held when the whole heap was largest, so that rows add up to the totals' peak. */
#define FIGURES(X)                                                                                           \
    X(live_bytes, figures->live_bytes.value)                                                                 \
    X(live_error, estimate_error(figures->live_bytes))                                                       \
    X(live_objects, figures->live_objects.value)                                                             \
    X(peak_bytes, figures->at_peak_bytes.value)                                                              \
    X(at_peak_bytes, figures->at_peak_bytes.value)                                                           \
    X(total_bytes, figures->total_bytes.value)                                                               \
    X(total_objects, figures->total_objects.value)                                                           \
    X(frees, figures->freed_objects)                                                                         \
    X(temporary_objects, figures->temporary_objects)                                                         \
    X(samples, (double)figures->samples)                                                                     \
    X(live_objects_error, estimate_error(figures->live_objects))                                             \
    X(live_samples, (double)figures->live_samples)                                                           \
    X(peak_objects, figures->at_peak_objects.value)                                                          \
    X(at_peak_error, estimate_error(figures->at_peak_bytes))                                                 \
    X(at_peak_objects, figures->at_peak_objects.value)                                                       \
    X(total_error, estimate_error(figures->total_bytes))                                                     \
    X(total_objects_error, estimate_error(figures->total_objects))                                           \
    X(freed_bytes, figures->freed_bytes)                                                                     \
    X(temporary_bytes, figures->temporary_bytes)                                                             \
    X(peak_error, estimate_error(figures->at_peak_bytes))                                                    \
    X(peak_objects_error, estimate_error(figures->at_peak_objects))                                          \
    X(own_peak_at_most, figures->own_peak_bytes)

static const char *const drop_names[DROP_KINDS] = {
    [DROP_LIVE_TABLE] = "live_table",
    [DROP_STACK_TABLE] = "stack_table",
    [DROP_THREAD] = "thread",
    [DROP_SCRATCH] = "scratch",
    [DROP_MODULE] = "module",
    [DROP_ADDRESS] = "address",
    [DROP_RING] = "ring",
    [DROP_TRACKED] = "tracked",
    [DROP_CALL] = "call",
    [DROP_NAME] = "name",
    [DROP_INHERITED] = "inherited",
    [DROP_CHILD] = "child",
};

const char *machine_output_state_name(enum process_state state) {
    static const char *const names[] = {
        [PROCESS_RUNNING] = "running",
        [PROCESS_FINISHED] = "finished",
        [PROCESS_KILLED] = "killed",
    };
    return names[state];
}

/* Freed objects by lifetime. Element b counts those that lived for less than 4^b × 1,024 ns, and not for less than
 * the element before says; the last one counts all others. */
static void write_lifetime(struct json *json, const struct figures *figures) {
    json_key(json, "lifetime");
    json_array(json);
    for (int i = 0; i < LIFETIME_BUCKETS; i++) json_number(json, figures->lifetime[i]);
    json_array_end(json);
}

void machine_output_write_figures(struct json *json, const struct figures *figures) {
#define WRITE(name, value) json_key_number(json, #name, value);
    FIGURES(WRITE)
#undef WRITE
    write_lifetime(json, figures);
}

void machine_output_write_figure_names(struct json *json) {
    json_array(json);
#define WRITE(name, value) json_string(json, #name);
    FIGURES(WRITE)
#undef WRITE
    json_array_end(json);
}

void machine_output_write_figure_values(struct json *json, const struct figures *figures) {
#define WRITE(name, value) json_number(json, value);
    FIGURES(WRITE)
#undef WRITE
}

static void write_unrecorded(struct json *json, const struct unrecorded_list *unrecorded) {
    json_key(json, "unrecorded_programs");
    json_array(json);
    for (size_t i = 0; i < unrecorded->count; i++) {
        json_object(json);
        json_key_string(json, "path", unrecorded->list[i].path);
        json_key_string(json, "reason", unrecorded_list_reason_name(unrecorded->list[i].reason));
        json_key_number(json, "count", (double)unrecorded->list[i].count);
        json_object_end(json);
    }
    json_array_end(json);
    json_key_number(json, "unrecorded_starts", (double)unrecorded_list_total(unrecorded));
}

void machine_output_write_trust(struct json *json, const struct figures *figures, bool exact) {
    json_key_boolean(json, "few_samples", !exact && figures->samples < FEW_SAMPLES);
    json_key_boolean(json, "few_live_samples", !exact && figures->live_samples < FEW_SAMPLES);
}

void machine_output_write_totals(struct json *json, const struct model *model) {
    const struct totals *totals = &model->totals;
    const struct figures *sum = &totals->sum;

    json_object(json);
    json_key_number(json, "live_bytes", sum->live_bytes.value);
    json_key_number(json, "live_error", estimate_error(sum->live_bytes));
    json_key_number(json, "live_objects", sum->live_objects.value);
    json_key_number(json, "peak_bytes", totals->peak.value);
    json_key_number(json, "total_bytes", sum->total_bytes.value);
    json_key_number(json, "total_objects", sum->total_objects.value);
    json_key_number(json, "frees", sum->freed_objects);
    json_key_number(json, "samples", (double)sum->samples);
    json_key_number(json, "drops", (double)totals->drops_total);
    json_key_number(json, "rate", (double)model->rate);
    json_key_number(json, "exact_total_bytes", totals->exact_total_bytes);
    json_key_number(json, "recorder_bytes", (double)totals->recorder_bytes);

    json_key_boolean(json, "exact", model->exact);
    json_key_number(json, "call_sites", (double)totals->call_sites);
    json_key_number(json, "active_call_sites", (double)totals->active_call_sites);
    json_key_boolean(json, "partial", model->is_partial || model->is_late);
    json_key_number(json, "live_objects_error", estimate_error(sum->live_objects));
    json_key_number(json, "live_samples", (double)sum->live_samples);
    json_key_number(json, "peak_error", estimate_error(totals->peak));
    json_key_number(json, "peak_at_most", totals->peak_at_most);
    json_key_number(json, "peak_objects", totals->peak_objects);
    json_key_number(json, "peak_objects_error", estimate_error(sum->at_peak_objects));
    machine_output_write_trust(json, sum, model->exact);
    json_key_number(json, "total_error", estimate_error(sum->total_bytes));
    json_key_number(json, "total_objects_error", estimate_error(sum->total_objects));
    json_key_number(json, "freed_bytes", sum->freed_bytes);
    json_key_number(json, "inherited_bytes", sum->inherited_bytes);
    json_key_number(json, "temporary_objects", sum->temporary_objects);
    json_key_number(json, "temporary_bytes", sum->temporary_bytes);
    json_key_boolean(json, "exact_total_is_complete", totals->exact_is_complete);
    json_key_number(json, "unknown_frees", (double)totals->unknown_frees);
    if (totals->frees) {
        json_key_number(json, "frees", (double)totals->frees);
        json_key_number(json, "older_frees", totals->older_frees.value);
        json_key_number(json, "older_frees_error",
            CONFIDENCE_INTERVAL_DEVIATIONS * confidence_interval_root(totals->older_frees.variance));
    }
    json_key(json, "drops_by_kind");
    json_object(json);
    for (int i = 0; i < DROP_KINDS; i++) json_key_number(json, drop_names[i], (double)totals->drops[i]);
    json_object_end(json);
    json_key_number(json, "processes", (double)model->process_count);
    json_key_number(json, "processes_at_once", (double)totals->processes_at_once);
    write_unrecorded(json, &model->unrecorded);
    write_lifetime(json, sum);
    json_object_end(json);
}

void machine_output_write_health(struct json *json, const struct model *model) {
    json_object(json);
    json_key_number(json, "complete", model->health.complete);
    json_key_number(json, "truncated", (double)model->health.truncated);
    json_key_number(json, "folded", (double)model->health.folded);
    json_key_number(json, "mean_depth", model->health.mean_depth);
    json_key_string(json, "confidence", model->health.confidence);
    json_object_end(json);
}

void machine_output_write_row(struct json *json, const struct view_row *row) {
    json_object(json);
    json_key_string(json, "function", row->function);
    json_key_string(json, "file", row->file);
    json_key_integer(json, "line", row->line);
    json_key_string(json, "module", row->module);
    machine_output_write_figures(json, &row->figures);
    json_key_string(json, "heap", row->heap);
    json_key_string(json, "type", row->type);
    json_key_string(json, "scope", row->scope);
    json_object_end(json);
}

void machine_output_write_heaps(struct json *json, const struct model *model) {
    size_t count = 0;
    struct heap_totals *heaps = heap_totals_make(model, &count);
    json_array(json);
    for (size_t i = 0; i < count; i++) {
        json_object(json);
        json_key_string(json, "name", heaps[i].name);
        json_key_number(json, "rate", (double)heaps[i].rate);
        machine_output_write_figures(json, &heaps[i].figures);
        json_object_end(json);
    }
    json_array_end(json);
    free(heaps);
}

/* Line breaks are kept, since they may be within quotes. Other control characters are replaced. A spreadsheet takes a
 * cell that begins with one of =+-@ for a formula, which may run programs or send data away: an apostrophe in front
 * makes it text. */
static void write_csv_text(FILE *out, const char *text) {
    bool quoted = text && strpbrk(text, ",\"\n");

    if (quoted) fputc('"', out);
    if (text && *text && strchr("=+-@\t\r\n", *text)) fputc('\'', out);
    while (text && *text) {
        size_t length = utf8_length(text);
        if (*text == '"') fputc('"', out);
        if (length && (*text == '\n' || !utf8_control_length(text))) {
            fwrite(text, 1, length, out);
        } else {
            fputs(UTF8_REPLACEMENT, out);
        }
        text += length ? length : 1;
    }
    if (quoted) fputc('"', out);
}

void machine_output_write_csv_header(FILE *out, bool threads) {
    if (threads) fputs("thread,", out);
    fputs("function,file,line,module", out);
#define WRITE(name, value) fputs("," #name, out);
    FIGURES(WRITE)
#undef WRITE
    fputs(",heap,type,scope,recorder_bytes\n", out);
}

static bool known_of_threads(const char *figure) {
    return strcmp(figure, "total_bytes") == 0 || strcmp(figure, "samples") == 0;
}

void machine_output_write_csv_row(
    FILE *out, const struct view_row *row, bool threads, const struct model *model) {
    const struct figures *figures = &row->figures;
    char text[JSON_NUMBER_SIZE];

    write_csv_text(out, row->function);
    if (threads) {
        fputs(",,,,", out);
    } else {
        fputc(',', out);
        write_csv_text(out, row->file);
        fprintf(out, ",%d,", row->line);
        write_csv_text(out, row->module);
    }
#define WRITE(name, value)                                                                                   \
    json_number_text(value, text);                                                                           \
    fprintf(out, ",%s", threads && !known_of_threads(#name) ? "" : text);
    FIGURES(WRITE)
#undef WRITE
    const char *const labels[] = {row->heap, row->type, row->scope};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        fputc(',', out);
        write_csv_text(out, labels[i]);
    }
    fprintf(out, ",%" PRIu64 "\n", model->totals.recorder_bytes);
}
