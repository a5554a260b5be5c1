#include "view/suppressions.h"

#include "base/memory.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- matching ---- */

/* An end that is not anchored is treated as if a * were there. On a mismatch the last * takes one character more.
 * No earlier
 * * needs to be tried again, so that the time is at most length of the pattern × length of the text. */
bool suppressions_match_text(const char *pattern, const char *text) {
    if (!text || !*text) return false;
    bool from_start = *pattern == '^';
    pattern += from_start;
    size_t length = strlen(pattern), at = 0, after_star = 0;
    bool to_end = length > 0 && pattern[length - 1] == '$';
    if (to_end) length--;
    const char *retry = from_start ? NULL : text;
    for (;;) {
        if (at < length && pattern[at] == '*') {
            after_star = ++at;
            retry = text;
        } else if (at == length && (!to_end || !*text)) {
            return true;
        } else if (at < length && *text && pattern[at] == *text) {
            at++;
            text++;
        } else if (retry && *retry) {
            at = after_star;
            text = ++retry;
        } else {
            return false;
        }
    }
}

static bool matches_frame(const char *pattern, const struct source_frame *frame) {
    const struct symbol *symbol = frame->symbol;
    return suppressions_match_text(pattern, symbol->function) ||
           suppressions_match_text(pattern, symbol->linkage) ||
           suppressions_match_text(pattern, symbol->file) ||
           (frame->module && suppressions_match_text(pattern, frame->module->path));
}

struct suppression *suppressions_find(
    const struct suppressions *suppressions, const struct source_frames *frames) {
    for (size_t i = 0; i < suppressions->count; i++)
        for (size_t frame = frames->first; frame < frames->end; frame++)
            if (matches_frame(suppressions->list[i].pattern, &frames->frames[frame]))
                return &suppressions->list[i];
    return NULL;
}

size_t suppressions_used(const struct suppressions *suppressions) {
    size_t used = 0;
    for (size_t i = 0; i < suppressions->count; i++) used += suppressions->list[i].used;
    return used;
}

/* ---- reading ---- */

static char *trim(char *line) {
    while (isspace((unsigned char)*line)) line++;
    size_t length = strlen(line);
    while (length && isspace((unsigned char)line[length - 1])) line[--length] = '\0';
    return line;
}

static void add(struct suppressions *suppressions, const char *pattern) {
    suppressions->list =
        memory_reallocate_array(suppressions->list, suppressions->count + 1, sizeof *suppressions->list);
    suppressions->list[suppressions->count++] = (struct suppression){.pattern = memory_copy_text(pattern)};
}

static int read_lines(
    FILE *file, const char *path, struct suppressions *suppressions, struct problem *problem) {
    char *line = NULL;
    size_t size = 0, number = 0;
    int r = 0;
    while (!r && getline(&line, &size, file) >= 0) {
        char *text = trim(line);
        number++;
        if (!*text || *text == '#') continue;
        char *pattern = strncmp(text, "leak:", 5) == 0 ? trim(text + 5) : NULL;
        if (!pattern || !*pattern)
            r = problem_set(problem, PROBLEM_USAGE,
                "write leak:PATTERN, with a part of a function's, file's or library's name",
                "line %zu of '%s' is no suppression: '%s'", number, path, text);
        else
            add(suppressions, pattern);
    }
    if (!r && ferror(file))
        r = problem_set(problem, PROBLEM_FAILURE, "name a text file with lines such as leak:PATTERN",
            "cannot read '%s': %s", path, strerror(errno));
    free(line);
    return r;
}

int suppressions_read(const char *path, struct suppressions *ret_suppressions, struct problem *problem) {
    FILE *file = fopen(path, "re");
    if (!file)
        return problem_set(problem, problem_kind_of_errno(errno),
            "name a text file with lines such as leak:PATTERN", "cannot open '%s': %s", path,
            strerror(errno));
    struct suppressions read = {0};
    int r = read_lines(file, path, &read, problem);
    fclose(file);
    if (r < 0)
        suppressions_free(&read);
    else
        *ret_suppressions = read;
    return r;
}

void suppressions_free(struct suppressions *suppressions) {
    for (size_t i = 0; i < suppressions->count; i++) free(suppressions->list[i].pattern);
    free(suppressions->list);
    *suppressions = (struct suppressions){0};
}
