/* Programs that are not recorded, in words. */
#ifndef MALLOSCOPE_CLI_WORDS_UNRECORDED_TEXT_H
#define MALLOSCOPE_CLI_WORDS_UNRECORDED_TEXT_H

#include "model/unrecorded_list.h"

/* Why a program is not recorded: "statically linked". */
const char *unrecorded_text_reason(enum unrecorded_reason reason);

/* "3 programs that it started or became: /bin/busybox (statically linked) 2 times, …", with what can be done. NULL if
 * there are none. The caller frees it. */
char *unrecorded_text(const struct unrecorded_list *list);

#endif
