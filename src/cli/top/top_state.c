#include "cli/top/top_state.h"
#include "base/memory.h"
#include "cli/terminal/text.h"
#include "cli/words/notes.h"
#include "cli/words/stack_text.h"
#include "cli/words/summary.h"
#include "view/name_key.h"

#include <libiberty/hashtab.h>
#include <stdlib.h>
#include <string.h>

/* Sites */

static hashval_t hash_site(const void *entry) {
    const struct top_site *site = entry;
    uint64_t hash = name_key_hash(NAME_KEY_START + (uint64_t)site->line, site->function);
    hash = name_key_hash(name_key_hash(hash, site->file), site->module);
    hash = name_key_hash(name_key_hash(hash, site->heap), site->type);
    return (hashval_t)(hash ^ hash >> 32);
}

static int same_site(const void *left, const void *right) {
    const struct top_site *a = left, *b = right;
    return a->line == b->line && name_key_equal(a->function, b->function) &&
           name_key_equal(a->file, b->file) && name_key_equal(a->module, b->module) &&
           name_key_equal(a->heap, b->heap) && name_key_equal(a->type, b->type);
}

static char *copy_name(const char *name) {
    return name ? memory_copy_text(name) : NULL;
}

void top_set_stack(struct top_site *site, struct frame_text *frames, size_t count) {
    stack_text_free(site->stack, site->stack_count);
    site->stack = frames;
    site->stack_count = count;
}

static void free_site(struct top_site *site) {
    top_set_stack(site, NULL, 0);
    free(site->function);
    free(site->file);
    free(site->module);
    free(site->heap);
    free(site->type);
    free(site->cells);
    free(site);
}

struct top_site *top_find_site(struct top_state *state, const struct view_row *row) {
    struct top_site key = {.function = (char *)row->function,
        .file = (char *)row->file,
        .module = (char *)row->module,
        .heap = (char *)row->heap,
        .type = (char *)row->type,
        .line = row->line};
    void **slot = htab_find_slot(state->index, &key, INSERT);
    if (*slot) return *slot;
    if (state->site_count == state->site_capacity) {
        state->site_capacity = state->site_capacity ? 2 * state->site_capacity : 64;
        state->sites = memory_reallocate(state->sites, state->site_capacity * sizeof *state->sites);
    }
    struct top_site *site = memory_allocate(sizeof *site);
    *site = (struct top_site){.function = copy_name(row->function),
        .file = copy_name(row->file),
        .module = copy_name(row->module),
        .heap = copy_name(row->heap),
        .type = copy_name(row->type),
        .line = row->line,
        .matches = !state->filter};
    *slot = state->sites[state->site_count++] = site;
    return site;
}

static struct top_cell *find_cell(struct top_site *site, uint32_t process) {
    for (size_t i = 0; i < site->cell_count; i++)
        if (site->cells[i].process == process) return &site->cells[i];
    site->cells = memory_reallocate(site->cells, (site->cell_count + 1) * sizeof *site->cells);
    struct top_cell *cell = &site->cells[site->cell_count++];
    *cell = (struct top_cell){.process = process, .age = -1};
    return cell;
}

static struct top_amounts amounts_of(const struct figures *figures) {
    return (struct top_amounts){figures->live_bytes.value, figures->total_bytes.value,
        figures->total_objects.value, figures->temporary_objects};
}

void top_forget_stacks(struct top_state *state, const struct model *model) {
    for (size_t i = 0; i < state->site_count; i++)
        for (size_t k = 0; k < state->sites[i]->cell_count; k++) {
            struct top_cell *cell = &state->sites[i]->cells[k];
            if (cell->stack >= model->stacks && cell->stack < model->stacks + model->stack_count)
                cell->stack = NULL;
        }
}

struct top_site *top_set_site(
    struct top_state *state, const struct top_process *process, const struct view_row *row) {
    const struct figures *figures = &row->figures;
    struct top_site *site = top_find_site(state, row);
    struct top_cell *cell = find_cell(site, process->number);
    cell->now = amounts_of(figures);
    cell->live = figures->live_bytes;
    cell->history[state->reading % (TOP_WINDOW + 1)] = cell->now.live;
    cell->age = figures->oldest == UINT64_MAX ? -1 : process->duration - (double)figures->oldest / 1e9;
    if (figures->oldest != UINT64_MAX && cell->age < 0) cell->age = 0;
    cell->stack = row->largest;
    return site;
}

/* Processes */

struct top_process *top_add_process(struct top_state *state, int pid, int parent, const char *name) {
    struct top_process *process = memory_allocate(sizeof *process);
    *process = (struct top_process){.number = ++state->last_number,
        .pid = pid,
        .parent = parent,
        .name = text_clean(name),
        .running = true,
        .first_reading = state->reading};
    state->processes =
        memory_reallocate(state->processes, (state->process_count + 1) * sizeof *state->processes);
    state->processes[state->process_count++] = process;
    return process;
}

struct top_process *top_find_process(const struct top_state *state, uint32_t number) {
    for (size_t i = 0; i < state->process_count; i++)
        if (state->processes[i]->number == number) return state->processes[i];
    return NULL;
}

void top_set_process(struct top_state *state, struct top_process *process, const struct model *model) {
    process->running = model->processes[0].state == PROCESS_RUNNING;
    process->duration = model->processes[0].duration;
    process->now = amounts_of(&model->totals.sum);
    process->live = model->totals.sum.live_bytes;
    process->is_incomplete = notes_incomplete(model);
    process->levels_only = model->levels_only;
    if (model->levels_only && model->moment_count)
        process->now.live = process->live.value = model->timeline[model->moment_count - 1].live_last;
    process->peak = model->totals.peak;
    process->levels[state->reading % TOP_LEVELS] = process->now.live;
}

static void free_process(struct top_process *process) {
    free(process->name);
    free(process);
}

static void remove_cell(struct top_site *site, uint32_t process) {
    for (size_t i = 0; i < site->cell_count; i++)
        if (site->cells[i].process == process) site->cells[i] = site->cells[--site->cell_count];
}

void top_remove_process(struct top_state *state, uint32_t number) {
    size_t kept = 0;
    for (size_t i = 0; i < state->process_count; i++) {
        if (state->processes[i]->number == number)
            free_process(state->processes[i]);
        else
            state->processes[kept++] = state->processes[i];
    }
    state->process_count = kept;
    if (state->shown == number) state->shown = 0;
    kept = 0;
    for (size_t i = 0; i < state->site_count; i++) {
        struct top_site *site = state->sites[i];
        remove_cell(site, number);
        if (site->cell_count) {
            state->sites[kept++] = site;
            continue;
        }
        if (state->cursor == site) state->cursor = NULL;
        htab_remove_elt(state->index, site);
        free_site(site);
    }
    state->site_count = kept;
    state->row_count = 0; /* rows may point to sites that were freed; top_arrange makes them again */
}

static bool any_runs(const struct top_state *state) {
    for (size_t i = 0; i < state->process_count; i++)
        if (state->processes[i]->running) return true;
    return false;
}

bool top_counts(const struct top_state *state, const struct top_process *process) {
    if (state->shown) return process->number == state->shown;
    return process->running || !any_runs(state);
}

double top_level(const struct top_state *state, size_t reading) {
    double sum = 0;
    for (size_t i = 0; i < state->process_count; i++) {
        const struct top_process *process = state->processes[i];
        if (reading >= process->first_reading && top_counts(state, process))
            sum += process->levels[reading % TOP_LEVELS];
    }
    return sum;
}

size_t top_first_level(const struct top_state *state) {
    size_t first = state->reading;
    for (size_t i = 0; i < state->process_count; i++)
        if (top_counts(state, state->processes[i]) && state->processes[i]->first_reading < first)
            first = state->processes[i]->first_reading;
    return state->reading - first >= TOP_LEVELS ? state->reading - TOP_LEVELS + 1 : first;
}

/* Over how many readings growth is measured: at most TOP_WINDOW; 0 for a process that has ended. */
static size_t window_of(const struct top_state *state, const struct top_process *process) {
    if (!process->running) return 0;
    size_t known = state->reading - process->first_reading;
    return known < TOP_WINDOW ? known : TOP_WINDOW;
}

static double per_second(const struct top_state *state, double change, size_t window) {
    double seconds =
        state->times[state->reading % TOP_LEVELS] - state->times[(state->reading - window) % TOP_LEVELS];
    return window && seconds > 0 ? change / seconds : 0;
}

double top_growth_of_process(const struct top_state *state, const struct top_process *process) {
    size_t window = window_of(state, process);
    return per_second(state,
        process->levels[state->reading % TOP_LEVELS] -
            process->levels[(state->reading - window) % TOP_LEVELS],
        window);
}

/* Readings */

void top_start(struct top_state *state) {
    *state = (struct top_state){.base_time = -1, .interval = 1, .page = 10};
    state->index = htab_create(64, hash_site, same_site, NULL);
}

void top_free(struct top_state *state) {
    for (size_t i = 0; i < state->process_count; i++) free_process(state->processes[i]);
    for (size_t i = 0; i < state->site_count; i++) free_site(state->sites[i]);
    htab_delete(state->index);
    free(state->processes);
    free(state->sites);
    free(state->rows);
    free(state->filter);
    free(state->note);
}

void top_begin_reading(struct top_state *state, double time) {
    size_t last = state->reading++;
    state->times[state->reading % TOP_LEVELS] = time;
    /* The new level of a process is that of the reading before, until the process is read; 0 if it has ended. */
    for (size_t i = 0; i < state->process_count; i++) {
        struct top_process *process = state->processes[i];
        process->levels[state->reading % TOP_LEVELS] =
            process->running ? process->levels[last % TOP_LEVELS] : 0;
    }
    for (size_t i = 0; i < state->site_count; i++)
        for (size_t k = 0; k < state->sites[i]->cell_count; k++) {
            struct top_cell *cell = &state->sites[i]->cells[k];
            cell->history[state->reading % (TOP_WINDOW + 1)] = cell->now.live;
        }
}

void top_set_note(struct top_state *state, const char *text, double now, double stays) {
    if (now < state->note_until && stays == 0) return;
    free(state->note);
    state->note = text ? text_clean(text) : NULL;
    state->note_until = now + stays;
}

/* Rows */

static bool make_row(const struct top_state *state, struct top_site *site, struct top_row *row) {
    *row = (struct top_row){.site = site, .age = -1};
    bool any = false;
    for (size_t i = 0; i < site->cell_count; i++) {
        const struct top_cell *cell = &site->cells[i];
        const struct top_process *process = top_find_process(state, cell->process);
        if (!top_counts(state, process)) continue;
        size_t window = window_of(state, process), length = TOP_WINDOW + 1;
        row->amounts.live += cell->now.live - cell->base.live;
        row->amounts.total += cell->now.total - cell->base.total;
        row->amounts.allocations += cell->now.allocations - cell->base.allocations;
        row->amounts.temporary += cell->now.temporary - cell->base.temporary;
        row->live = any ? estimate_add(row->live, cell->live) : cell->live;
        row->growth += per_second(state,
            cell->history[state->reading % length] - cell->history[(state->reading - window) % length],
            window);
        if (cell->age > row->age) row->age = cell->age;
        any = true;
    }
    return any && site->matches && (row->amounts.live != 0 || row->amounts.total > 0);
}

static double sort_value(const struct top_row *row, enum top_sort sort) {
    switch (sort) {
    case TOP_GROWTH:
        return row->growth;
    case TOP_TOTAL:
        return row->amounts.total;
    case TOP_TEMPORARY:
        return row->amounts.temporary;
    case TOP_OLDEST:
        return row->age;
    default:
        return row->amounts.live;
    }
}

/* Rows of equal value are ordered by their names, so that they do not change places from reading to reading. */
static int compare_rows(const void *left, const void *right, void *context) {
    const struct top_row *a = left, *b = right;
    const enum top_sort sorts[] = {*(enum top_sort *)context, TOP_LIVE, TOP_TOTAL};
    for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++) {
        double x = sort_value(a, sorts[i]), y = sort_value(b, sorts[i]);
        if (x != y) return x < y ? 1 : -1;
    }
    int order = name_key_compare(a->site->function, b->site->function);
    if (!order) order = name_key_compare(a->site->file, b->site->file);
    return order ? order : a->site->line - b->site->line;
}

/* By pid. Of the programs that one process has become by exec, the last comes first: children are shown below the
 * first entry of their parent's pid. */
static int compare_processes(const void *left, const void *right) {
    const struct top_process *a = *(struct top_process *const *)left,
                             *b = *(struct top_process *const *)right;
    if (a->pid != b->pid) return a->pid < b->pid ? -1 : 1;
    return (a->number < b->number) - (a->number > b->number);
}

static bool has_parent(const struct top_state *state, const struct top_process *process) {
    for (size_t i = 0; i < state->process_count; i++)
        if (state->processes[i]->pid == process->parent && process->parent != process->pid) return true;
    return false;
}

/* Moves the children of `parent` from `from` to `ordered`, each followed by its own children. `parent` < 0: moves the
 * processes whose parent is not shown. */
static void order_children(struct top_state *state, struct top_process **from, int parent, size_t depth,
    struct top_process **ordered, size_t *used) {
    for (size_t i = 0; i < state->process_count; i++) {
        struct top_process *process = from[i];
        if (!process || (parent < 0 ? has_parent(state, process) : process->parent != parent)) continue;
        from[i] = NULL;
        process->depth = depth;
        ordered[(*used)++] = process;
        order_children(state, from, process->pid, depth + 1, ordered, used);
    }
}

static void order_processes(struct top_state *state) {
    size_t count = state->process_count, used = 0;
    if (count < 2) return;
    struct top_process **from = memory_allocate(count * sizeof *from),
                       **ordered = memory_allocate(count * sizeof *ordered);
    qsort(state->processes, count, sizeof *state->processes, compare_processes);
    memcpy(from, state->processes, count * sizeof *from);
    order_children(state, from, -1, 0, ordered, &used);
    for (size_t i = 0; i < count; i++) /* pids that were reused can make a circle, which no root leads to */
        if (from[i]) ordered[used++] = from[i];
    memcpy(state->processes, ordered, count * sizeof *ordered);
    free(from);
    free(ordered);
}

void top_arrange(struct top_state *state) {
    order_processes(state);
    state->rows = memory_reallocate(state->rows, (state->site_count + 1) * sizeof *state->rows);
    state->row_count = 0;
    for (size_t i = 0; i < state->site_count; i++)
        state->row_count += make_row(state, state->sites[i], &state->rows[state->row_count]);
    if (state->row_count)
        qsort_r(state->rows, state->row_count, sizeof *state->rows, compare_rows, &state->sort);
}
