#include "cli/run/output_pattern.h"
#include "base/memory.h"
#include "core/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDING ".mscope"

/* What the names are for, and how another one is given. */
struct purpose {
    const char *files, *option, *default_name;
};
static const struct purpose for_recordings = {"the recording", "-o", "malloscope.%e.%p.mscope"};
static const struct purpose for_dumps = {"the dumps", "--dump", "malloscope.%e.%p.%n.heap"};

/* Checking */

static int check_percents(const struct purpose *purpose, const char *pattern, struct problem *problem) {
    for (const char *p = strchr(pattern, '%'); p; p = strchr(p + 2, '%'))
        if (!p[1] || !strchr("pehtn%", p[1]))
            return problem_set(problem, PROBLEM_USAGE,
                "use %p (pid), %e (program), %h (host), %t (time), %n (counter); %% is a percent sign",
                "'%.2s' in the name '%s' of %s means nothing", p, pattern, purpose->files);
    return 0;
}

/* The folder that recordings go to: up to the last slash, or to the one before the first part that varies. */
static char *fixed_folder(const char *pattern) {
    size_t length = strcspn(pattern, "%");
    while (length > 0 && pattern[length - 1] != '/') length--;
    if (!strchr(pattern, '%')) length = (size_t)(strrchr(pattern, '/') - pattern) + 1;
    return length > 1 ? memory_format_text("%.*s", (int)(length - 1), pattern) : memory_copy_text("/");
}

static int check_folder(const struct purpose *purpose, const char *pattern, struct problem *problem) {
    cleanup_text char *folder = fixed_folder(pattern);
    struct stat status;
    cleanup_text char *make =
        memory_format_text("make it with mkdir -p, or choose another with %s", purpose->option);
    cleanup_text char *move = memory_format_text("choose another place with %s", purpose->option);
    cleanup_text char *move_to = memory_format_text(
        "choose another place with %s, for instance %s /tmp", purpose->option, purpose->option);
    const char *verb = purpose == &for_dumps ? "dump" : "record";
    if (stat(folder, &status) < 0) {
        int error = errno;
        return problem_set(problem, problem_kind_of_errno(error), make, "cannot %s into the folder '%s': %s",
            verb, folder, strerror(error));
    }
    if (!S_ISDIR(status.st_mode))
        return problem_set(
            problem, PROBLEM_MISSING, move, "cannot %s into '%s': it is not a folder", verb, folder);
    /* Rights, read-only mounts, quotas and file systems that hold no files: only an attempt tells. */
    cleanup_text char *trial = memory_format_text("%s/.malloscope.%d", folder, (int)getpid());
    int fd = open(trial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST) {
        int error = errno;
        return problem_set(problem, error == EROFS ? PROBLEM_PERMISSION : problem_kind_of_errno(error),
            move_to, "cannot make files in the folder '%s': %s", folder, strerror(error));
    }
    if (fd >= 0) {
        close(fd);
        unlink(trial);
    }
    return 0;
}

static int check_file(const char *pattern, bool force, struct problem *problem) {
    struct stat status;
    if (strchr(pattern, '%') || lstat(pattern, &status) < 0)
        return 0; /* names that vary: the recorder looks itself */
    if (!force)
        return problem_set(problem, PROBLEM_FAILURE, "replace it with -f, or choose another name with -o",
            "'%s' exists already", pattern);
    if (!S_ISREG(status.st_mode))
        return problem_set(
            problem, PROBLEM_FAILURE, "choose another name with -o", "'%s' is not a plain file", pattern);
    return 0;
}

static char *make_absolute(const char *given) {
    if (given[0] == '/') return memory_copy_text(given);
    cleanup_text char *here = getcwd(NULL, 0);
    if (!here) return NULL;
    /* A percent sign in the name of the current folder stands for itself. */
    char *escaped = memory_allocate(2 * strlen(here) + 1), *out = escaped;
    for (const char *p = here; *p; p++) {
        if (*p == '%') *out++ = '%';
        *out++ = *p;
    }
    *out = 0;
    char *absolute = memory_format_text("%s/%s", strcmp(escaped, "/") == 0 ? "" : escaped, given);
    free(escaped);
    return absolute;
}

static int prepare(
    const struct purpose *purpose, const char *given, char **ret_pattern, struct problem *problem) {
    struct stat status;
    cleanup_text char *name = NULL;
    size_t length = given ? strlen(given) : 0;
    if (length == 0)
        name = memory_copy_text(purpose->default_name);
    else if (given[length - 1] == '/')
        name = memory_format_text("%s%s", given, purpose->default_name);
    else if (!strchr(given, '%') && stat(given, &status) == 0 && S_ISDIR(status.st_mode))
        name = memory_format_text("%s/%s", given, purpose->default_name);
    else
        name = memory_copy_text(given);
    char *pattern = make_absolute(name);
    if (!pattern) {
        int error = errno;
        cleanup_text char *advice = memory_format_text(
            "give an absolute path with %s, or change to a folder that exists", purpose->option);
        return problem_set(
            problem, PROBLEM_FAILURE, advice, "the current folder cannot be named: %s", strerror(error));
    }
    int r = check_percents(purpose, pattern, problem);
    if (r == 0 && strlen(pattern) > PATH_MAX - 64) {
        cleanup_text char *advice = memory_format_text("choose a shorter one with %s", purpose->option);
        r = problem_set(problem, PROBLEM_FAILURE, advice, "the name of %s is too long", purpose->files);
    }
    if (r == 0) r = check_folder(purpose, pattern, problem);
    if (r < 0)
        free(pattern);
    else
        *ret_pattern = pattern;
    return r;
}

int output_pattern_prepare(const char *given, bool force, char **ret_pattern, struct problem *problem) {
    char *pattern;
    int r = prepare(&for_recordings, given, &pattern, problem);
    if (r < 0) return r;
    r = check_file(pattern, force, problem);
    if (r < 0)
        free(pattern);
    else
        *ret_pattern = pattern;
    return r;
}

int dump_pattern_prepare(const char *given, char **ret_pattern, struct problem *problem) {
    return prepare(&for_dumps, given, ret_pattern, problem);
}

/* Finding what came of it */

/* A pattern of glob(3) for all names that the recorder may make: those with a suffix for a name that was
 * taken too. */
static char *glob_of(const char *pattern, bool with_suffix) {
    size_t length = strlen(pattern), ending = strlen(ENDING);
    bool has_ending = length > ending && strcmp(pattern + length - ending, ENDING) == 0;
    size_t suffix_at = has_ending ? length - ending : length;
    char *result = memory_allocate(2 * length + 3), *out = result;
    for (size_t i = 0; i <= length; i++) {
        if (with_suffix && i == suffix_at) out = stpcpy(out, ".*");
        if (i == length) break;
        if (pattern[i] == '%' && pattern[i + 1] == '%') {
            *out++ = pattern[i++];
        } else if (pattern[i] == '%') {
            *out++ = '*';
            i++;
        } else {
            if (strchr("*?[\\", pattern[i])) *out++ = '\\';
            *out++ = pattern[i];
        }
    }
    *out = 0;
    return result;
}

struct candidate {
    char *path;
    int pid, parent;
    uint64_t start;
    bool belongs;
};

static bool read_candidate(const char *path, uint64_t start, struct candidate *ret_candidate) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    static struct recording_header header; /* too large for comfort on the stack, and read one at a time */
    ssize_t length = pread(fd, &header, sizeof header, 0);
    close(fd);
    if (length != (ssize_t)sizeof header || memcmp(header.magic, RECORDING_MAGIC, sizeof header.magic) != 0)
        return false;
    if (header.start_realtime < start || header.flags & RECORDING_SNAPSHOT) return false;
    *ret_candidate = (struct candidate){
        memory_copy_text(path), header.pid, header.parent_pid, header.start_realtime, false};
    return true;
}

static size_t collect(const char *pattern, uint64_t start, struct candidate **ret_candidates) {
    struct candidate *candidates = NULL;
    size_t count = 0;
    cleanup_text char *plain = glob_of(pattern, false);
    cleanup_text char *suffixed = glob_of(pattern, true);
    glob_t found = {0};
    glob(plain, 0, NULL, &found);
    glob(suffixed, GLOB_APPEND, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        bool twice = false;
        for (size_t k = 0; k < count; k++)
            twice = twice || strcmp(candidates[k].path, found.gl_pathv[i]) == 0;
        struct candidate candidate;
        if (twice || !read_candidate(found.gl_pathv[i], start, &candidate)) continue;
        candidates = memory_reallocate(candidates, (count + 1) * sizeof *candidates);
        candidates[count++] = candidate;
    }
    globfree(&found);
    *ret_candidates = candidates;
    return count;
}

/* Descent: whoever has a parent that belongs belongs. */
static void mark_descendants(struct candidate *candidates, size_t count, int root) {
    for (size_t i = 0; i < count; i++)
        candidates[i].belongs = candidates[i].pid == root || candidates[i].parent == root;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < count && !candidates[i].belongs; k++)
                if (candidates[k].belongs && candidates[i].parent == candidates[k].pid)
                    changed = candidates[i].belongs = true;
    }
}

/* A name without a pattern is that of the program, also where a shell or a shim was started that became it.
 * The first recording has got it. Neither is written to any more: one process made both. */
static void exchange_names(struct candidate *first, struct candidate *last) {
    if (renameat2(AT_FDCWD, last->path, AT_FDCWD, first->path, RENAME_EXCHANGE) != 0) return;
    char *path = first->path;
    first->path = last->path;
    last->path = path;
}

void run_recordings_find(
    const char *pattern, int root, uint64_t start, struct run_recordings *ret_recordings) {
    struct candidate *candidates = NULL;
    size_t count = collect(pattern, start, &candidates), main = count;
    mark_descendants(candidates, count, root);
    for (size_t i = 0; i < count; i++)
        if (candidates[i].pid == root && (main == count || candidates[i].start > candidates[main].start))
            main = i;
    for (size_t i = 0; i < count; i++)
        if (i != main && candidates[i].pid == root && strcmp(candidates[i].path, pattern) == 0)
            exchange_names(&candidates[i], &candidates[main]);
    struct run_recordings recordings = {.children = memory_allocate((count + 1) * sizeof(char *))};
    for (size_t i = 0; i < count; i++) {
        if (i == main)
            recordings.main = candidates[i].path;
        else if (candidates[i].belongs)
            recordings.children[recordings.child_count++] = candidates[i].path;
        else
            free(candidates[i].path);
    }
    free(candidates);
    *ret_recordings = recordings;
}

void run_recordings_free(struct run_recordings *recordings) {
    free(recordings->main);
    for (size_t i = 0; i < recordings->child_count; i++) free(recordings->children[i]);
    free(recordings->children);
}
