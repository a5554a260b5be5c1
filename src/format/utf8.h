/* Text from programs and debug information: any bytes, made fit for formats that want UTF-8 on one line. */
#ifndef MALLOSCOPE_FORMAT_UTF8_H
#define MALLOSCOPE_FORMAT_UTF8_H

#include <stddef.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Length of the UTF-8 sequence that `text` starts with, or 0 if it does not start with one (overlong forms,
 * surrogates and values beyond U+10FFFF are not UTF-8). The terminating NUL is a sequence of length 1. */
size_t utf8_length(const char *text);

/* Length of the control character that `text` starts with, or 0: terminals take those below U+0020, U+007F
 * and those from U+0080 to U+009F for commands. */
size_t utf8_control_length(const char *text);

/* A copy of `text` in which every byte that is not UTF-8 is U+FFFD. The caller frees it; NULL without memory.
 */
char *utf8_clean_copy(const char *text);

#endif
