/* Suppression files: the input up to the first zero byte is the file, what follows is a name. Every pattern
 * is compared with a matcher that is too simple to be wrong. */
#include "fuzz.h"

#include "view/suppressions.h"

#include <sys/mman.h>

#define NAME_MOST 4096

static int file;
static char path[64];

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    file = memfd_create("suppressions", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return file < 0;
}

/* All places of the text that a beginning of the pattern may lead to, one character of the pattern after the
 * other. */
static bool simple_matches(const char *pattern, const char *text) {
    size_t size = strlen(text);
    if (size == 0 || size > NAME_MOST) return false;
    bool at[NAME_MOST + 1] = {false}, from_start = *pattern == '^';
    pattern += from_start;
    for (size_t i = 0; i <= size; i++) at[i] = i == 0 || !from_start;
    size_t length = strlen(pattern);
    bool to_end = length && pattern[length - 1] == '$';
    for (size_t p = 0; p < length - to_end; p++) {
        if (pattern[p] == '*')
            for (size_t i = 0; i < size; i++) at[i + 1] |= at[i];
        else {
            for (size_t i = size; i > 0; i--) at[i] = at[i - 1] && text[i - 1] == pattern[p];
            at[0] = false;
        }
    }
    if (to_end) return at[size];
    for (size_t i = 0; i <= size; i++)
        if (at[i]) return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    const uint8_t *zero = size ? memchr(bytes, 0, size) : NULL;
    size_t length = zero ? (size_t)(zero - bytes) : size;
    file_put(file, bytes, length);
    char *name = zero ? input_text(zero + 1, size - length - 1) : input_text((const uint8_t *)"", 0);
    struct suppressions suppressions;
    struct problem problem = {0};
    if (suppressions_read(path, &suppressions, &problem) < 0) {
        REQUIRE(problem.what[0] && problem.remedy[0]);
        free(name);
        return 0;
    }
    for (size_t i = 0; i < suppressions.count; i++) {
        const char *pattern = suppressions.list[i].pattern;
        REQUIRE(*pattern);
        bool matches = suppressions_match_text(pattern, name);
        if (strlen(name) <= NAME_MOST) REQUIRE(matches == simple_matches(pattern, name));
    }
    suppressions_free(&suppressions);
    free(name);
    return 0;
}
