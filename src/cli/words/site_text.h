/* How a frame is named in tables, trees and stacks. */
#ifndef MALLOSCOPE_CLI_WORDS_SITE_TEXT_H
#define MALLOSCOPE_CLI_WORDS_SITE_TEXT_H

#include "cli/terminal/place_text.h"

#include <stdbool.h>

/* Name: the function, or the file, or the module, whichever is known first. Place: file and line, or the
 * module. The function's name is shortened (view/short_name.h) unless `full`. */
struct place_text site_text(const char *function, const char *file, int line, const char *module, bool full);

#endif
