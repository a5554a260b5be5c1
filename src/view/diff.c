#include "view/diff.h"

#include "base/confidence_interval.h"
#include "base/hash_index.h"
#include "base/memory.h"
#include "base/path.h"
#include "view/name_key.h"

#include <math.h>
#include <stdlib.h>

#define DOUBT 0.05 /* probability of a false alarm in a comparison of two recordings of one program */

struct estimate diff_figure(
    const struct figures *figures, enum diff_value value, const struct diff_side *side) {
    if (side->at_peak && value == DIFF_LIVE) value = DIFF_PEAK;
    if (side->at_peak && value == DIFF_OBJECTS) value = DIFF_PEAK_OBJECTS;
    switch (value) {
    case DIFF_LIVE:
        return figures->live_bytes;
    case DIFF_PEAK:
        return figures->at_peak_bytes;
    case DIFF_TOTAL:
        return figures->total_bytes;
    case DIFF_OBJECTS:
        return figures->live_objects;
    case DIFF_PEAK_OBJECTS:
        return figures->at_peak_objects;
    case DIFF_ALLOCATIONS:
        return figures->total_objects;
    }
    return (struct estimate){0};
}

/* ---- matching ---- */

/* The names by which rows of both sides are matched. Line numbers count only if the rows are grouped by them: they
 * move when a source is edited. */
static struct view_row key_of(enum view_by by, const struct view_row *row) {
    struct view_row key = view_row_key(by, row);
    if (by != BY_SITE && by != BY_LINE) key.line = 0;
    key.file = path_last_part(key.file);
    key.module = key.file ? NULL : path_last_part(key.module);
    return key;
}

/* The rows of the diff by their keys. */
struct matches {
    const struct diff *diff;
    enum view_by by;
    struct hash_index index;
};

struct search {
    const struct matches *matches;
    const struct view_row *key;
};

static bool is_equal(const void *context, uint32_t number) {
    const struct search *search = context;
    struct view_row other = key_of(search->matches->by, search->matches->diff->rows[number].row);
    return view_row_equal(&other, search->key);
}

static struct diff_row *find_or_add(struct diff *diff, struct matches *matches, const struct view_row *row) {
    struct view_row key = key_of(matches->by, row);
    uint64_t hash = view_row_hash(&key);
    uint32_t number = hash_index_find(&matches->index, hash, is_equal, &(struct search){matches, &key});
    if (number != HASH_INDEX_NONE) return &diff->rows[number];
    hash_index_add(&matches->index, hash, (uint32_t)diff->count);
    diff->rows[diff->count] = (struct diff_row){.row = row};
    return &diff->rows[diff->count++];
}

/* ---- significance ---- */

/* A normal variable deviates from its mean by more than so many standard deviations with this probability. */
static double deviation_of(double probability) {
    double low = 0, high = 40;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (erfc(middle / M_SQRT2) > probability)
            low = middle;
        else
            high = middle;
    }
    return high;
}

struct diff_judge diff_judge_of(size_t lines, const struct diff_side *base, const struct diff_side *fresh) {
    double doubt = DOUBT / (double)(lines ? lines : 1);
    uint64_t rate = base->rate > fresh->rate ? base->rate : fresh->rate;
    return (struct diff_judge){deviation_of(doubt), doubt, (double)rate};
}

/* Half the width of the 95 % interval of the change: both sides are independent, so that variances add up. */
static double error_of(const struct diff_row *row) {
    return hypot(estimate_error(row->base), estimate_error(row->fresh));
}

/* Whether the change may be bytes that one side did not sample. b bytes stay without a sample with probability
 * exp(-b / rate), in whatever blocks they are. There are all / change stretches of that size, each of which may be
 * the one that was missed, and either side may have missed it. If blocks are large, this is far more probable than
 * a normal distribution with the same variance says. */
static bool may_be_missed(double change, double all, const struct diff_judge *judge) {
    if (judge->rate <= 1) return false;
    double chances = 2 * fmax(all / change, 1);
    return chances * exp(-change / judge->rate) > judge->doubt;
}

/* Bytes for each unit of what is compared: 1 for bytes, the mean size for objects. */
static double size_of(const struct diff_row *row, bool of_bytes) {
    if (of_bytes || !row->row) return 1;
    const struct figures *figures = &row->row->figures;
    return figures->total_objects.value > 0 ? figures->total_bytes.value / figures->total_objects.value : 0;
}

static void judge_row(struct diff_row *row, const struct diff_judge *judge, bool of_bytes) {
    double change = fabs(row->fresh.value - row->base.value), size = size_of(row, of_bytes);
    row->change = row->fresh.value - row->base.value;
    row->error = change > 0 || row->base.variance + row->fresh.variance > 0 ? error_of(row) : 0;
    double deviation = hypot(row->base.value > 0 ? estimate_error(row->base) : 0,
                           row->fresh.value > 0 ? estimate_error(row->fresh) : 0) /
                       CONFIDENCE_INTERVAL_DEVIATIONS;
    row->significant = change > judge->deviation * deviation && change > 0 &&
                       !may_be_missed(change * size, (row->base.value + row->fresh.value) * size, judge);
}

static int compare_rows(const void *a, const void *b) {
    const struct diff_row *x = a, *y = b;
    if (x->significant != y->significant) return x->significant ? -1 : 1;
    double change_x = fabs(x->change), change_y = fabs(y->change);
    if (change_x != change_y) return change_x > change_y ? -1 : 1;
    int order = name_key_compare(x->row->function, y->row->function);
    return order ? order : (x->row->line > y->row->line) - (x->row->line < y->row->line);
}

/* Removes lines that are 0 on both sides. */
static void drop_empty(struct diff *diff) {
    size_t kept = 0;
    for (size_t i = 0; i < diff->count; i++)
        if (diff->rows[i].base.value != 0 || diff->rows[i].fresh.value != 0)
            diff->rows[kept++] = diff->rows[i];
    diff->count = kept;
}

void diff_make(const struct diff_side *base, const struct diff_side *fresh, enum diff_value value,
    enum view_by by, struct diff *ret_diff) {
    size_t most = base->rows->count + fresh->rows->count;
    struct diff diff = {.rows = memory_allocate((most + 1) * sizeof *diff.rows)};
    struct matches matches = {.diff = &diff, .by = by};
    for (size_t i = 0; i < base->rows->count; i++) {
        struct diff_row *row = find_or_add(&diff, &matches, &base->rows->rows[i]);
        row->base = estimate_add(row->base, diff_figure(&base->rows->rows[i].figures, value, base));
    }
    for (size_t i = 0; i < fresh->rows->count; i++) {
        struct diff_row *row = find_or_add(&diff, &matches, &fresh->rows->rows[i]);
        row->row = &fresh->rows->rows[i];
        row->fresh = estimate_add(row->fresh, diff_figure(&row->row->figures, value, fresh));
    }
    hash_index_free(&matches.index);
    drop_empty(&diff);

    struct diff_judge judge = diff_judge_of(diff.count, base, fresh), alone = diff_judge_of(1, base, fresh);
    diff.total.base = diff_figure(&base->rows->sum, value, base);
    diff.total.fresh = diff_figure(&fresh->rows->sum, value, fresh);
    bool of_bytes = !diff_counts_objects(value);
    judge_row(&diff.total, &alone, of_bytes);
    for (size_t i = 0; i < diff.count; i++) {
        judge_row(&diff.rows[i], &judge, of_bytes);
        diff.significant_count += diff.rows[i].significant;
    }
    if (diff.count) qsort(diff.rows, diff.count, sizeof *diff.rows, compare_rows);
    *ret_diff = diff;
}

void diff_free(struct diff *diff) {
    free(diff->rows);
    *diff = (struct diff){0};
}
