#include "cli/options/spelling.h"

#include <stdbool.h>
#include <string.h>

#define LENGTH_MAX 32

static size_t smallest(size_t a, size_t b, size_t c) {
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* How many letters have to be changed, added, removed or swapped with their neighbour to make `b` of `a`. */
static size_t distance(const char *a, const char *b) {
    size_t length_a = strlen(a), length_b = strlen(b);
    if (length_a > LENGTH_MAX || length_b > LENGTH_MAX) return LENGTH_MAX;
    size_t table[LENGTH_MAX + 1][LENGTH_MAX + 1];
    for (size_t i = 0; i <= length_a; i++) table[i][0] = i;
    for (size_t j = 0; j <= length_b; j++) table[0][j] = j;
    for (size_t i = 1; i <= length_a; i++)
        for (size_t j = 1; j <= length_b; j++) {
            size_t changed = table[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            table[i][j] = smallest(table[i - 1][j] + 1, table[i][j - 1] + 1, changed);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                table[i - 2][j - 2] + 1 < table[i][j])
                table[i][j] = table[i - 2][j - 2] + 1;
        }
    return table[length_a][length_b];
}

const char *spelling_nearest(const char *text, const char *const *candidates, size_t count) {
    const char *best = NULL;
    size_t length = strlen(text);
    size_t best_distance = length / 3 + 2; /* at most length / 3 + 1 slips are forgiven */
    if (length < 2) return NULL;
    for (size_t i = 0; i < count; i++) {
        bool starts_so = strncmp(candidates[i], text, length) == 0;
        size_t d = starts_so ? 1 : distance(text, candidates[i]);
        if (d < best_distance) {
            best_distance = d;
            best = candidates[i];
        }
    }
    return best;
}
