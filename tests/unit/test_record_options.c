/* Names of recordings, as the recorder makes them from a pattern. */
#include "check.h"
#include "record/life/options.h"

#include <stdlib.h>
#include <unistd.h>

static const char *path_of(const char *pattern, unsigned attempt) {
    static char path[4096];
    return options_path(pattern, 77, attempt, path, sizeof path) ? path : "(too long)";
}

int main(void) {
    struct options options;
    CHECK(options_read(&options));
    options_find_program();
    CHECK_TEXT(path_of("/tmp/a.mscope", 0), "/tmp/a.mscope");
    CHECK_TEXT(path_of("/tmp/a.mscope", 1), "/tmp/a.77.mscope");
    CHECK_TEXT(path_of("/tmp/a.mscope", 2), "/tmp/a.77.2.mscope");
    CHECK_TEXT(path_of("/tmp/a", 1), "/tmp/a.77");
    CHECK_TEXT(path_of("/tmp/%p-%e-100%%.mscope", 0), "/tmp/77-test_record_options-100%.mscope");
    CHECK_TEXT(path_of("/tmp/%n.mscope", 0), "/tmp/1.mscope");
    CHECK_TEXT(path_of("/tmp/%n.mscope", 4), "/tmp/5.mscope");
    CHECK_TEXT(path_of("/tmp/100%%n.mscope", 1), "/tmp/100%n.77.mscope");
    CHECK_TEXT(path_of("/tmp/100%%n/%n.mscope", 1), "/tmp/100%n/2.mscope");
    CHECK_TEXT(path_of("/tmp/a.heap", 2), "/tmp/a.77.2.heap");
    CHECK_TEXT(path_of("/tmp/%x%", 0), "/tmp/%x%");
    char expected[4200], folder[4096];
    snprintf(expected, sizeof expected, "%s/x.mscope", getcwd(folder, sizeof folder));
    CHECK_TEXT(path_of("x.mscope", 0), expected);
    char *long_pattern = malloc(5000);
    memset(long_pattern, 'a', 4999);
    long_pattern[0] = '/', long_pattern[4999] = '\0';
    CHECK_TEXT(path_of(long_pattern, 0), "(too long)");
    free(long_pattern);

    setenv("MALLOSCOPE_RATE", "64K", 1);
    setenv("MALLOSCOPE_FORCE", "1", 1);
    CHECK(options_read(&options));
    CHECK_EQUAL(options.rate, 65536);
    CHECK(options.replace && options.is_root && options.follow);
    CHECK_TEXT(getenv("MALLOSCOPE_FORCE"), "0"); /* asked once */
    setenv("MALLOSCOPE_ROOT", "1", 1);
    setenv("MALLOSCOPE_RATE", "0", 1);
    setenv("MALLOSCOPE_DEPTH", "1000000", 1);
    CHECK(options_read(&options) && !options.is_root);
    CHECK_EQUAL(options.rate, 1);
    CHECK_EQUAL(options.depth, DEPTH_MOST);
    return check_result();
}
