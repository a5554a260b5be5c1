#include "base/unfinished_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

static const char *unfinished;

static void remove_unfinished(void) {
    if (unfinished) unlink(unfinished);
}

void unfinished_file_begin(const char *path) {
    static bool is_watched;
    if (!is_watched) is_watched = atexit(remove_unfinished) == 0;
    unfinished = path;
}

void unfinished_file_end(void) {
    unfinished = NULL;
}
