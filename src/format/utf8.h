/* Names from programs and debug information may be any bytes. These functions make them fit for formats that need
 * UTF-8 without control characters. */
#ifndef MALLOSCOPE_FORMAT_UTF8_H
#define MALLOSCOPE_FORMAT_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD: stands for a byte that is not UTF-8 */

/* Length of the UTF-8 sequence that `text` begins with; 0 if it does not begin with one. Overlong forms, surrogates
 * and values beyond U+10FFFF are not UTF-8. The terminating NUL is a sequence of length 1. */
size_t utf8_length(const char *text);

/* The code of the character that `text` begins with, if that is valid UTF-8 (utf8_length). */
uint32_t utf8_code(const char *text);

/* Length of the control character that `text` begins with; 0 if it does not begin with one. Terminals take
 * characters below U+0020, U+007F, and those from U+0080 to U+009F for commands. Those that turn the direction of
 * writing, join or hide other characters count as well: with them a name can look like another. */
size_t utf8_control_length(const char *text);

/* A copy of `text` in which each byte that is not UTF-8 is replaced by UTF8_REPLACEMENT. The caller frees it. */
char *utf8_clean_copy(const char *text);

#endif
