/* An estimate and half the width of its 95 % interval: "12.0 MiB ± 1.50 MiB". */
#ifndef MALLOSCOPE_CLI_WORDS_ESTIMATE_TEXT_H
#define MALLOSCOPE_CLI_WORDS_ESTIMATE_TEXT_H

#include "model/model.h"

/* Without an error, as in exact recordings, only the value. The caller frees the text. */
char *estimate_text_bytes(struct estimate estimate);
char *estimate_text_count(struct estimate estimate);

#endif
