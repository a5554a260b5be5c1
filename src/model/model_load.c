/* model_load: from the sources that the user names to a model. Sources are recordings, archives, folders and
 * processes. */
#include "base/memory.h"
#include "model/archive.h"
#include "model/load_recording.h"
#include "model/source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int add_recording(
    struct model_builder *builder, struct recording_file *file, struct problem *problem) {
    struct snapshot snapshot;
    file->will_be_written = builder->archive != NULL;
    int r = snapshot_take(file, &snapshot, problem);
    if (r < 0) return r;
    r = load_recording(builder, &snapshot, file->path, problem);
    if (r == 0 && builder->archive) archive_writer_add_recording(builder->archive, &snapshot);
    snapshot_free(&snapshot);
    return r;
}

/* Adds the names of an archive to the model. False: it has none that can be read; its recordings can be shown all
 * the same. */
static bool add_names(struct model_builder *builder, const struct archive *archive) {
    struct model *model = builder->model;
    struct model_names names = {.size = archive->names.size};
    struct problem problem;
    if (archive->is_cut)
        model_builder_warn_damage(
            builder, "the archive '%s' is cut off: parts of it are missing", archive->path);
    if (!names.size) return false;
    if (archive_take_names(archive, &names.bytes, &problem) < 0) {
        model_builder_warn_damage(builder, "%s", problem.what);
        return false;
    }
    names.path = memory_copy_text(archive->path);
    model_builder_grow(&model->names, &builder->names_capacity, model->names_count, 1, sizeof *model->names);
    model->names[model->names_count++] = names;
    return true;
}

/* Adds the recordings of an archive. One that cannot be read is left out with a warning. Fails if none can be read. */
static int add_archive(
    struct model_builder *builder, const struct archive *archive, struct problem *problem) {
    struct model *model = builder->model;
    size_t before = model->process_count;
    struct problem first = {0};
    bool has_names = add_names(builder, archive);
    for (size_t i = 0; i < archive->recording_count; i++) {
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
        if (first.kind == 0) first = own;
        if (archive->recording_count > 1) model_builder_warn_damage(builder, "%s: left out", own.what);
    }
    if (model->process_count > before) return 0;
    return problem_set(problem, first.kind, first.remedy, "%s", first.what);
}

static int add_file(struct model_builder *builder, const char *path, int writer, struct problem *problem) {
    struct recording_file file;
    int r = recording_file_open(path, writer, &file, problem);
    if (r < 0) return r;
    file.skip_resident_size = builder->skip_resident_size;
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

/* Whether this recording was added already, under another source. */
static bool is_known(const struct model *model, const char *path) {
    struct stat file, known;
    if (stat(path, &file) < 0) return false;
    for (size_t i = 0; i < model->process_count; i++)
        if (stat(model->processes[i].source, &known) == 0 && file.st_dev == known.st_dev &&
            file.st_ino == known.st_ino)
            return true;
    return false;
}

/* Adds the recordings of one source. If there are several recordings, one that cannot be read is left out with a
 * warning, and `first_problem` says why. A source that does not exist is a mistake of the user, and fails. */
static int add_source(struct model_builder *builder, const char *name, bool is_only,
    struct problem *first_problem, struct problem *problem) {
    struct source source = {0};
    int r = source_find(name, &source, problem);
    for (size_t i = 0; r == 0 && i < source.count; i++) {
        if (!is_only && is_known(builder->model, source.paths[i])) continue;
        struct problem own;
        if (add_file(builder, source.paths[i], source.pid, &own) == 0) continue;
        if (first_problem->kind == 0) *first_problem = own;
        if (!source.is_folder && own.kind == PROBLEM_MISSING) {
            *problem = own;
            r = -own.kind;
        } else if (source.is_folder || !is_only) {
            model_builder_warn_damage(builder, "%s: left out", own.what);
        }
    }
    source_free(&source);
    return r;
}

int model_load(const struct model_load_options *options, struct model **ret_model, struct problem *problem) {
    struct model_builder builder = {.archive = options->archive,
        .until = options->live_born_until ? (uint64_t)(*options->live_born_until * 1e9) : UINT64_MAX,
        .skip_resident_size = options->skip_resident_size,
        .with_samples = options->with_samples};
    struct problem first_problem = {0}, mistake = {0};
    int r = 0;
    model_builder_start(&builder);
    for (size_t i = 0; r == 0 && i < options->source_count; i++)
        r = add_source(&builder, options->sources[i], options->source_count == 1, &first_problem, &mistake);
    if (r < 0) first_problem = mistake;
    if (r == 0 && builder.model->process_count) {
        *ret_model = model_builder_finish(&builder);
        return 0;
    }
    model_builder_discard(&builder);
    return problem_set(problem, first_problem.kind, first_problem.remedy, "%s", first_problem.what);
}
