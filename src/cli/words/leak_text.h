/* Why an entry of `leaks` is, or is not, likely a leak, in words (view/leaks.h judges). */
#ifndef MALLOSCOPE_CLI_WORDS_LEAK_TEXT_H
#define MALLOSCOPE_CLI_WORDS_LEAK_TEXT_H

#include "view/leaks.h"

/* The kind for scripts: "growing", "outliving", "never_freed", "in_use", "start_up". */
const char *leak_text_kind(enum leak_kind kind);

/* A sentence without its full stop. The caller frees it. */
char *leak_text_why(const struct leak *leak, const struct leak_scene *scene);

#endif
