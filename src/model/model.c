#include "model/model.h"

#include "model/archive.h"
#include "model/load.h"
#include "model/module_map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int compare_modules(const void *a, const void *b) {
    const struct model_module *x = a, *y = b;
    if (x->process != y->process) return x->process < y->process ? -1 : 1;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->first_seen > y->first_seen) - (x->first_seen < y->first_seen);
}

static int compare_numbers(const void *a, const void *b) {
    const struct model_module *x = *(const struct model_module *const *)a,
                              *y = *(const struct model_module *const *)b;
    if (x->process != y->process) return x->process < y->process ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static struct model_place find_by_number(
    const struct model *model, uint32_t process, uint32_t number, uint64_t offset) {
    const struct model_module wanted = {.process = process, .number = number}, *key = &wanted;
    const struct model_module **found = NULL;
    if (model->module_count)
        found = bsearch(&key, model->numbered, model->module_count, sizeof *model->numbered, compare_numbers);
    if (!found || offset - (*found)->file_offset > (*found)->end - (*found)->start)
        return (struct model_place){0};
    return (struct model_place){*found, (*found)->start + (offset - (*found)->file_offset)};
}

const struct model_module *model_find_module(const struct model *model, uint32_t process, uint64_t address) {
    return module_map_find(model, process, address);
}

struct model_place model_find_place(const struct model *model, uint32_t process, uint64_t word) {
    uint64_t value = word & FRAME_VALUE_MASK;
    switch (word >> FRAME_KIND_SHIFT) {
    case FRAME_NATIVE:
        return (struct model_place){model_find_module(model, process, value ? value - 1 : 0), value};
    case FRAME_MODULE:
        return find_by_number(
            model, process, word >> FRAME_MODULE_SHIFT & FRAME_MODULE_MASK, word & FRAME_OFFSET_MASK);
    default:
        return (struct model_place){0};
    }
}

/* False if there is no memory. */
static bool sort_modules(struct model *model) {
    if (model->module_count == 0) return true;
    qsort(model->modules, model->module_count, sizeof *model->modules, compare_modules);
    for (size_t i = 0; i < model->module_count; i++) model->numbered[i] = &model->modules[i];
    qsort(model->numbered, model->module_count, sizeof *model->numbered, compare_numbers);
    return module_map_make(model);
}

static bool sum_up(struct builder *builder) {
    struct model *model = builder->model;
    struct figures *sum = &model->totals.sum;
    figures_clear(sum);
    for (size_t i = 0; i < model->stack_count; i++) {
        struct model_stack *stack = &model->stacks[i];
        stack->frames = model->frame_store + builder->frame_starts[i];
        figures_add(sum, &stack->figures);
    }
    /* A running program's header is copied before its stacks: they may have grown past the peak it knew. */
    model->totals.peak_bytes = fmax(model->totals.peak_bytes, sum->live_bytes.value);
    model->totals.peak_objects = sum->at_peak_objects.value;
    struct health *health = &model->health;
    double samples = (double)sum->samples;
    double truncated = samples > 0 ? (double)health->truncated / samples : 0;
    health->complete = 1 - truncated;
    health->mean_depth = samples > 0 ? builder->depth_sum / samples : 0;
    health->confidence = truncated < 0.05 ? "high" : truncated < 0.20 ? "medium" : "low";

    if (model->process_count > 1) {
        free(model->timeline);
        model->timeline = NULL;
        model->moment_count = 0;
    }
    return sort_modules(model);
}

static int add_recording(struct builder *builder, struct recording_file *file, struct problem *problem) {
    struct snapshot snapshot;
    file->is_passed_on = builder->archive != NULL;
    int r = snapshot_take(file, &snapshot, problem);
    if (r < 0) return r;
    r = load_recording(builder, &snapshot, file->path, problem);
    if (r == 0 && builder->archive) archive_writer_add_recording(builder->archive, &snapshot);
    snapshot_free(&snapshot);
    return r;
}

/* Takes the names out of an archive. Without them it is as good as a recording. */
static bool add_names(struct builder *builder, const struct archive *archive) {
    struct model *model = builder->model;
    struct model_names names = {.size = archive->names.size};
    struct problem problem;
    if (archive->is_cut)
        builder_warn_damage(builder, "the archive '%s' is cut off: parts of it are missing", archive->path);
    if (!names.size) return false;
    if (archive_take_names(archive, &names.bytes, &problem) < 0) {
        builder_warn_damage(builder, "%s", problem.what);
        return false;
    }
    names.path = strdup(archive->path);
    if (!names.path ||
        !builder_grow(&model->names, &builder->names_capacity, model->names_count, 1, sizeof *model->names)) {
        free(names.path);
        free(names.bytes);
        return false;
    }
    model->names[model->names_count++] = names;
    return true;
}

/* A recording that cannot be read does not hide the others. Fails if none can. */
static int add_archive(struct builder *builder, const struct archive *archive, struct problem *problem) {
    struct model *model = builder->model;
    size_t before = model->process_count;
    struct problem first = {0};
    bool has_names = add_names(builder, archive);
    for (size_t i = 0; i < archive->recording_count && !builder->failed; i++) {
        struct recording_file file;
        struct problem own;
        int r = archive_take_recording(archive, i, &file, &own);
        if (r == 0) {
            r = add_recording(builder, &file, &own);
            recording_file_close(&file);
        }
        if (r == 0) {
            struct model_process *process = &model->processes[model->process_count - 1];
            process->has_names = has_names;
            process->names = (uint32_t)model->names_count - has_names;
            process->names_space = (uint32_t)i;
            continue;
        }
        if (first.kind == 0 || builder->failed) first = own;
        if (archive->recording_count > 1) builder_warn_damage(builder, "%s: left out", own.what);
    }
    if (model->process_count > before && !builder->failed) return 0;
    return problem_set(problem, first.kind, first.remedy, "%s", first.what);
}

static int add_file(struct builder *builder, const char *path, int writer, struct problem *problem) {
    struct recording_file file;
    int r = recording_file_open(path, writer, &file, problem);
    if (r < 0) return r;
    file.is_glance = builder->is_glance;
    if (archive_is_one(file.descriptor)) {
        struct archive archive;
        r = archive_open(file.descriptor, path, &archive, problem);
        if (r == 0) r = add_archive(builder, &archive, problem);
        archive_close(&archive);
    } else {
        r = add_recording(builder, &file, problem);
    }
    recording_file_close(&file);
    return r;
}

/* Is it one that was added already, by another of the names given? */
static bool is_known(const struct model *model, const char *path) {
    struct stat file, known;
    if (stat(path, &file) < 0) return false;
    for (size_t i = 0; i < model->process_count; i++)
        if (stat(model->processes[i].source, &known) == 0 && file.st_dev == known.st_dev &&
            file.st_ino == known.st_ino)
            return true;
    return false;
}

/* Adds what one name stands for. Of several recordings a bad one does not hide the good ones: it is left out,
 * with a warning, and `first_problem` says why. A name that leads to nothing is a mistake, and fails. */
static int add_source(struct builder *builder, const char *name, bool is_only, struct problem *first_problem,
    struct problem *problem) {
    struct source source = {0};
    int r = source_find(name, &source, problem);
    for (size_t i = 0; r == 0 && i < source.count && !builder->failed; i++) {
        if (!is_only && is_known(builder->model, source.paths[i])) continue;
        struct problem own;
        if (add_file(builder, source.paths[i], source.pid, &own) == 0) continue;
        if (first_problem->kind == 0 || builder->failed) *first_problem = own;
        if (!source.is_folder && own.kind == PROBLEM_MISSING) {
            *problem = own;
            r = -own.kind;
        } else if (source.is_folder || !is_only) {
            builder_warn_damage(builder, "%s: left out", own.what);
        }
    }
    source_free(&source);
    return r;
}

/* How sources are read. */
struct reading {
    struct archive_writer *archive;
    uint64_t until;
    bool is_glance, with_samples;
};

static int load(const char *const *names, size_t count, struct reading reading, struct model **ret_model,
    struct problem *problem) {
    struct builder builder = {.model = calloc(1, sizeof *builder.model),
        .archive = reading.archive,
        .until = reading.until,
        .is_glance = reading.is_glance,
        .with_samples = reading.with_samples};
    struct model *model = builder.model;
    if (!model)
        return problem_set(problem, PROBLEM_FAILURE, "free some memory and try again", "out of memory");
    model->exact = model->totals.exact_is_complete = true;
    struct problem first_problem = {0}, mistake = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < count && !builder.failed; i++)
        r = add_source(&builder, names[i], count == 1, &first_problem, &mistake);
    if (r < 0) first_problem = mistake;
    if (r < 0 || model->process_count == 0 || builder.failed) {
        free(builder.frame_starts);
        model_free(model);
        return problem_set(problem, first_problem.kind, first_problem.remedy, "%s", first_problem.what);
    }
    bool whole = sum_up(&builder);
    free(builder.frame_starts);
    if (!whole) {
        model_free(model);
        return problem_set(problem, PROBLEM_FAILURE, "free some memory and try again", "out of memory");
    }
    *ret_model = model;
    return 0;
}

int model_load_and_archive(const char *const *names, size_t count, struct archive_writer *archive,
    struct model **ret_model, struct problem *problem) {
    return load(names, count, (struct reading){.archive = archive, .until = UINT64_MAX}, ret_model, problem);
}

int model_load_until(const char *name, double seconds, struct model **ret_model, struct problem *problem) {
    return load(&name, 1, (struct reading){.until = (uint64_t)(seconds * 1e9)}, ret_model, problem);
}

int model_load_with_samples(
    const char *const *names, size_t count, struct model **ret_model, struct problem *problem) {
    return load(
        names, count, (struct reading){.until = UINT64_MAX, .with_samples = true}, ret_model, problem);
}

int model_load_many(
    const char *const *names, size_t count, struct model **ret_model, struct problem *problem) {
    return model_load_and_archive(names, count, NULL, ret_model, problem);
}

int model_load(const char *name, struct model **ret_model, struct problem *problem) {
    return model_load_many(&name, 1, ret_model, problem);
}

int model_glance(const char *path, struct model **ret_model, struct problem *problem) {
    return load(&path, 1, (struct reading){.until = UINT64_MAX, .is_glance = true}, ret_model, problem);
}

const char *model_find_text(const struct model *model, uint32_t process, uint64_t number) {
    const struct model_process *of = &model->processes[process];
    return number && number < of->text_count ? model->texts[of->first_text + number] : NULL;
}

const struct model_code *model_find_code(const struct model *model, uint32_t process, uint64_t word) {
    const struct model_process *of = &model->processes[process];
    uint64_t number = word >> FRAME_CODE_SHIFT & FRAME_CODE_MASK;
    if (!number || number >= of->code_count) return NULL;
    const struct model_code *code = &model->codes[of->first_code + number];
    return code->name ? code : NULL;
}

void model_free(struct model *model) {
    if (!model) return;
    for (size_t i = 0; i < model->process_count; i++) {
        free(model->processes[i].source);
        free(model->processes[i].executable);
        free(model->processes[i].command_line);
        free(model->processes[i].allocator);
    }
    for (size_t i = 0; i < model->module_count; i++) free(model->modules[i].path);
    for (size_t i = 0; i < model->names_count; i++) {
        free(model->names[i].bytes);
        free(model->names[i].path);
    }
    for (size_t i = 0; i < model->text_count; i++) free(model->texts[i]);
    free(model->texts);
    free(model->heaps);
    for (size_t i = 0; i < model->code_count; i++) free(model->codes[i].name);
    free(model->codes);
    free(model->names);
    free(model->samples);
    free(model->processes);
    free(model->stacks);
    free(model->live);
    free(model->modules);
    free(model->numbered);
    free(model->module_ranges);
    free(model->threads);
    free(model->timeline);
    free(model->frame_store);
    free(model->warning);
    free(model);
}
