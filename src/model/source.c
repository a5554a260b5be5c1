#include "model/source.h"

#include "base/memory.h"
#include "model/duplicate_dumps.h"
#include "model/model.h"
#include "model/recording_file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Takes `path` over. */
static void add_path(struct source *source, char *path) {
    source->paths = memory_reallocate_array(source->paths, source->count + 1, sizeof *source->paths);
    source->paths[source->count++] = path;
}

static int find_in_folder(const char *name, struct source *source, struct problem *problem) {
    DIR *folder = opendir(name);
    if (!folder) {
        int error = errno;
        return problem_set(problem, problem_kind_of_errno(error), recording_file_access_remedy(),
            "cannot read the folder '%s': %s", name, strerror(error));
    }
    for (struct dirent *entry; (entry = readdir(folder));)
        if (recording_file_has_suffix(entry->d_name))
            add_path(source, memory_format_text("%s/%s", name, entry->d_name));
    closedir(folder);
    if (source->count == 0)
        return problem_set(problem, PROBLEM_MISSING,
            "name a folder that holds *.mscope files, or a single recording",
            "there are no recordings in the folder '%s'", name);
    qsort(source->paths, source->count, sizeof *source->paths, compare_names);
    source->count = duplicate_dumps_leave_out(source->paths, source->count);
    source->is_folder = true;
    return 0;
}

/* The process number that `name` is, or 0. */
static int process_number(const char *name) {
    for (const char *c = name; *c; c++)
        if (!isdigit((unsigned char)*c)) return 0;
    errno = 0;
    long number = strtol(name, NULL, 10);
    return errno == 0 && number > 0 && number <= INT_MAX ? (int)number : 0;
}

int source_find(const char *name, struct source *ret_source, struct problem *problem) {
    struct source source = {.pid = process_number(name)};
    struct stat status;
    int r = 0;
    if (source.pid) {
        char *path = NULL;
        source.pid = model_find_program_of_run(source.pid);
        r = model_find_recording_of(source.pid, &path, problem);
        if (r == 0) add_path(&source, path);
        /* A file may have a number as its name. The process comes first; "./123" always means the file. */
        if (r == -PROBLEM_MISSING && stat(name, &status) == 0) source.pid = 0;
    }
    if (!source.pid) {
        r = 0;
        if (stat(name, &status) == 0 && S_ISDIR(status.st_mode))
            r = find_in_folder(name, &source, problem);
        else
            add_path(&source, memory_copy_text(name));
    }
    if (r < 0)
        source_free(&source);
    else
        *ret_source = source;
    return r;
}

void source_free(struct source *source) {
    for (size_t i = 0; i < source->count; i++) free(source->paths[i]);
    free(source->paths);
    *source = (struct source){0};
}
