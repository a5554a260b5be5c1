/* How a site or frame is named in tables, trees and stacks. */
#ifndef MALLOSCOPE_CLI_WORDS_SITE_TEXT_H
#define MALLOSCOPE_CLI_WORDS_SITE_TEXT_H

#include "cli/terminal/place_text.h"

#include <stdbool.h>

/* The name is the function; if that is not known, file and line; if these are not known, the module. The place behind
 * the name of a function is file and line, or the module. Names of functions are shortened (view/short_name.h) unless
 * `full`. The caller frees the text with place_text_free. */
struct place_text site_text(const char *function, const char *file, int line, const char *module, bool full);

#endif
