#include "cli/top/top_reader.h"

#include "base/memory.h"
#include "base/nanoseconds.h"
#include "base/path.h"
#include "cli/words/stack_text.h"
#include "model/recording_file.h"
#include "model/source.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ENDED_STAYS 30 /* seconds for which a child that has ended is still shown */

/* Which recordings */

static bool is_watched(const struct top_reader *reader, const struct stat *status) {
    for (size_t i = 0; i < reader->watch_count; i++)
        if (reader->watches[i].device == status->st_dev && reader->watches[i].inode == status->st_ino)
            return true;
    return false;
}

static void add_watch(struct top_reader *reader, const char *path, int pid, bool is_named) {
    struct stat status;
    if (stat(path, &status) < 0 || is_watched(reader, &status)) return;
    reader->watches = memory_reallocate(reader->watches, (reader->watch_count + 1) * sizeof *reader->watches);
    reader->watches[reader->watch_count++] = (struct top_watch){.path = memory_copy_text(path),
        .device = status.st_dev,
        .inode = status.st_ino,
        .pid = pid,
        .is_named = is_named,
        .ended = -1};
}

static void remove_watch(struct top_reader *reader, size_t number) {
    struct top_watch *watch = &reader->watches[number];
    if (watch->process) top_remove_process(reader->state, watch->process);
    load_free(&watch->loaded);
    free(watch->path);
    *watch = reader->watches[--reader->watch_count];
}

/* Whether the process belongs to what the user named: a process that is watched is this process or one of its
 * ancestors. The watched process may have become another program by exec since. A pid that was reused does not
 * count: the start time of the process must be the same. */
static bool belongs(const struct top_reader *reader, int pid) {
    if (!reader->target_count) return true;
    for (size_t i = 0; i < reader->watch_count; i++) {
        const struct top_watch *watch = &reader->watches[i];
        const struct running_process *process =
            watch->pid ? running_processes_find(&reader->running, watch->pid) : NULL;
        if (process && process->start_time == watch->start_time &&
            running_processes_descends(&reader->running, pid, watch->pid))
            return true;
    }
    return false;
}

static int find_targets(struct top_reader *reader, bool is_first, struct problem *problem) {
    for (size_t i = 0; i < reader->target_count; i++) {
        struct stat status;
        bool is_folder = stat(reader->targets[i], &status) == 0 && S_ISDIR(status.st_mode);
        if (!is_first && !is_folder) continue;
        struct source source;
        int r = source_find(reader->targets[i], &source, problem);
        if (r < 0 && is_first) return r;
        if (r < 0) continue;
        for (size_t k = 0; k < source.count && is_first && r == 0; k++) {
            struct recording_file file;
            r = recording_file_open(source.paths[k], source.pid, &file, problem);
            if (r == 0) recording_file_close(&file);
        }
        for (size_t k = 0; k < source.count && r == 0; k++)
            add_watch(reader, source.paths[k], source.pid, true);
        source_free(&source);
        if (r < 0) return r;
    }
    return 0;
}

static void note_start(struct top_reader *reader, struct top_watch *watch) {
    const struct running_process *process =
        watch->pid ? running_processes_find(&reader->running, watch->pid) : NULL;
    if (process && !watch->start_time) watch->start_time = process->start_time;
}

int top_reader_find(struct top_reader *reader, double now, struct problem *problem) {
    int r = find_targets(reader, reader->state->reading == 0, problem);
    if (r < 0) return r;
    running_processes_update(&reader->running, now);
    for (size_t i = 0; i < reader->watch_count; i++) note_start(reader, &reader->watches[i]);
    for (size_t i = 0; i < reader->running.count; i++) {
        const struct running_process *process = &reader->running.list[i];
        if (process->recording && belongs(reader, process->pid))
            add_watch(reader, process->recording, 0, false);
    }
    return 0;
}

/* Reading */

/* Shows the first line of the warning for some seconds. */
static void note_warning(struct top_reader *reader, const char *text, double now) {
    enum { STAYS = 10 };
    if (!text) return;
    cleanup_text char *sentence = memory_format_text("%.*s", (int)strcspn(text, "\n"), text);
    top_set_note(reader->state, sentence, now, STAYS);
}

/* Symbolizes the model that was just read. The resolver of the reading before is kept if it can go on with this
 * model; then only new addresses are looked up. */
static void find_names(
    struct top_reader *reader, struct top_watch *watch, const struct model *model, double now) {
    struct loaded *loaded = &watch->loaded;
    if (loaded->resolver && resolver_follow(loaded->resolver, model)) {
        resolver_resolve_all(loaded->resolver, NULL, NULL);
        return;
    }
    if (loaded->resolver) resolver_free(loaded->resolver);
    loaded->resolver = NULL;
    uint64_t start = nanoseconds_now(CLOCK_PROCESS_CPUTIME_ID);
    loaded->model = (struct model *)model;
    load_names(loaded, &reader->options, reader->progress, reader->context);
    reader->names_cost += 1e-9 * (double)(nanoseconds_now(CLOCK_PROCESS_CPUTIME_ID) - start);
    note_warning(reader, model->warning, now);
    note_warning(reader, resolver_warning(loaded->resolver), now);
}

static void take_model(struct top_reader *reader, struct top_watch *watch, struct model *model, double now) {
    struct model *former = watch->loaded.model;
    find_names(reader, watch, model, now);
    watch->loaded.model = model;
    if (former) top_forget_stacks(reader->state, former);
    model_free(former);
}

static struct top_process *process_of(struct top_reader *reader, struct top_watch *watch) {
    const struct model_process *model = &watch->loaded.model->processes[0];
    if (model->running_pid) watch->pid = model->running_pid;
    note_start(reader, watch);
    if (watch->process) return top_find_process(reader->state, watch->process);
    const struct running_process *running =
        watch->pid ? running_processes_find(&reader->running, watch->pid) : NULL;
    struct top_process *process = top_add_process(reader->state, watch->pid ? watch->pid : model->pid,
        running ? running->parent : model->parent_pid, path_last_part(model->executable));
    watch->process = process->number;
    return process;
}

static void show_sites(struct top_reader *reader, const struct top_watch *watch,
    const struct top_process *process, struct problem *problem) {
    struct view_query query = {.by = BY_SITE, .sort = SORT_LIVE};
    struct view_rows rows;
    if (view_rows_query(watch->loaded.model, watch->loaded.resolver, &query, &rows, problem) < 0) return;
    for (size_t i = 0; i < rows.count; i++) top_set_site(reader->state, process, &rows.rows[i]);
    view_rows_free(&rows);
}

static int glance(const struct top_watch *watch, struct model **ret_model, struct problem *problem) {
    struct model_load_options options = {
        .sources = (const char *const[]){watch->path}, .source_count = 1, .skip_resident_size = true};
    int r = model_load(&options, ret_model, problem);
    if (r < 0 || (*ret_model)->process_count == 1) return r;
    model_free(*ret_model);
    return problem_set(problem, PROBLEM_USAGE, "'malloscope report' shows them",
        "'%s' holds several recordings, of which none is being written", watch->path);
}

int top_reader_check(const struct top_reader *reader, struct problem *problem) {
    for (size_t i = 0; i < reader->watch_count; i++) {
        struct model *model;
        if (!reader->watches[i].is_named) continue;
        int r = glance(&reader->watches[i], &model, problem);
        if (r < 0) return r;
        model_free(model);
    }
    return 0;
}

/* Returns false if the recording should not be watched any more. */
static bool read_watch(
    struct top_reader *reader, struct top_watch *watch, double now, struct problem *problem) {
    struct model *model;
    struct problem own = {0};
    if (glance(watch, &model, &own) < 0) {
        if (!watch->is_named && !watch->process)
            return false; /* it may not be complete yet: top_reader_find will find it again */
        *problem = own;
        if (own.kind == PROBLEM_MISSING) watch->ended = now;
        if (watch->process) top_find_process(reader->state, watch->process)->running = watch->ended < 0;
        return true;
    }
    take_model(reader, watch, model, now);
    struct top_process *process = process_of(reader, watch);
    top_set_process(reader->state, process, model);
    if (!process->running) {
        watch->ended = now;
        if (watch->pid)
            running_processes_look_again(
                &reader->running, watch->pid); /* it may have become another program */
    }
    show_sites(reader, watch, process, problem);
    return true;
}

static void forget_ended(struct top_reader *reader, double now) {
    bool any_runs = false;
    for (size_t i = 0; i < reader->watch_count; i++) any_runs |= reader->watches[i].ended < 0;
    for (size_t i = reader->watch_count; any_runs && i-- > 0;) {
        const struct top_watch *watch = &reader->watches[i];
        if (!watch->is_named && watch->ended >= 0 && now - watch->ended > ENDED_STAYS &&
            watch->process != reader->state->shown)
            remove_watch(reader, i);
    }
}

static bool any_to_read(const struct top_reader *reader) {
    for (size_t i = 0; i < reader->watch_count; i++)
        if (reader->watches[i].ended < 0) return true;
    return false;
}

static void note_state(struct top_reader *reader, double now, const struct problem *problem) {
    bool all_ended = reader->watch_count && !any_to_read(reader);
    top_set_note(reader->state,
        problem->kind ? problem->what
        : all_ended   ? "all programs have ended: these are their last figures"
                      : NULL,
        now, 0);
}

void top_reader_read(struct top_reader *reader, double now) {
    struct problem problem = {0};
    forget_ended(reader, now);
    if (any_to_read(reader)) {
        top_begin_reading(reader->state, now);
        for (size_t i = reader->watch_count; i-- > 0;)
            if (reader->watches[i].ended < 0 && !read_watch(reader, &reader->watches[i], now, &problem))
                remove_watch(reader, i);
        top_reader_filter(reader, now);
        top_reader_expand(reader);
    }
    note_state(reader, now, &problem);
}

void top_reader_filter(struct top_reader *reader, double now) {
    struct top_state *state = reader->state;
    for (size_t i = 0; i < state->site_count; i++) state->sites[i]->matches = !state->filter;
    struct view_query query = {.by = BY_SITE, .sort = SORT_LIVE, .filter = state->filter};
    for (size_t i = 0; i < reader->watch_count && state->filter; i++) {
        const struct loaded *loaded = &reader->watches[i].loaded;
        struct view_rows rows;
        struct problem problem = {0};
        if (!loaded->resolver) continue;
        if (view_rows_query(loaded->model, loaded->resolver, &query, &rows, &problem) < 0) {
            free(state->filter);
            state->filter = NULL;
            top_reader_filter(reader, now);
            top_set_note(state, problem.what, now, 5);
            return;
        }
        for (size_t k = 0; k < rows.count; k++) top_find_site(state, &rows.rows[k])->matches = true;
        view_rows_free(&rows);
    }
    top_arrange(state);
}

static const struct top_watch *watch_of(const struct top_reader *reader, uint32_t process) {
    for (size_t i = 0; i < reader->watch_count; i++)
        if (reader->watches[i].process == process) return &reader->watches[i];
    return NULL;
}

void top_reader_expand(struct top_reader *reader) {
    static const struct stack_style style = {.indent = ""};
    struct top_state *state = reader->state;
    for (size_t i = 0; i < state->site_count; i++) {
        struct top_site *site = state->sites[i];
        if (!site->expanded && !site->stack) continue;
        const struct top_cell *largest = NULL;
        for (size_t k = 0; k < site->cell_count && site->expanded; k++) {
            const struct top_cell *cell = &site->cells[k];
            if (top_counts(state, top_find_process(state, cell->process)) &&
                (!largest || cell->now.live > largest->now.live))
                largest = cell;
        }
        size_t count = 0;
        struct frame_text *frames = NULL;
        if (largest && largest->stack)
            frames =
                stack_text_make(&watch_of(reader, largest->process)->loaded, largest->stack, &style, &count);
        top_set_stack(site, frames, count);
    }
}

void top_reader_free(struct top_reader *reader) {
    for (size_t i = 0; i < reader->watch_count; i++) {
        load_free(&reader->watches[i].loaded);
        free(reader->watches[i].path);
    }
    free(reader->watches);
    running_processes_free(&reader->running);
}
