#include "cli/run/run_recordings.h"
#include "base/memory.h"
#include "core/recording.h"

#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENDING ".mscope"

/* The pattern of glob(3) for the names that the recorder can make of `pattern`. If a name is taken, the recorder
 * puts the pid before the ending: `with_suffix` gives the pattern for such names. */
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
    static struct recording_header header; /* static because it is large for a stack */
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

/* Marks the recordings of `root`, of its children, and of the children of every process that is marked. */
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

/* Adds the programs that a recording's process has started, or has become, and that are not recorded. */
static void add_unrecorded(const char *path, struct unrecorded_list *list) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return;
    static struct recording_header header;
    static struct unrecorded_programs table;
    if (pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header && header.unrecorded &&
        pread(fd, &table, sizeof table, (off_t)header.unrecorded) == (ssize_t)sizeof table)
        unrecorded_list_add(list, &table);
    close(fd);
}

/* If the name has no varying part, the user expects the recording of the program under it. Where a shell or a shim
 * was started that became the program by exec, the recording of the shell has that name. The two then exchange
 * names. Nobody writes to them any more, since one process made both and has ended. */
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
        if (candidates[i].belongs) add_unrecorded(candidates[i].path, &recordings.unrecorded);
        if (i == main)
            recordings.main = candidates[i].path;
        else if (candidates[i].belongs)
            recordings.children[recordings.child_count++] = candidates[i].path;
        else
            free(candidates[i].path);
    }
    free(candidates);
    unrecorded_list_sort(&recordings.unrecorded);
    *ret_recordings = recordings;
}

void run_recordings_free(struct run_recordings *recordings) {
    free(recordings->main);
    for (size_t i = 0; i < recordings->child_count; i++) free(recordings->children[i]);
    free(recordings->children);
    unrecorded_list_free(&recordings->unrecorded);
}
