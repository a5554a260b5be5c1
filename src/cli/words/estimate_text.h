/* An estimate and half the width of its 95 % interval: "12.0 MiB ± 1.50 MiB". */
#ifndef MALLOSCOPE_CLI_WORDS_ESTIMATE_TEXT_H
#define MALLOSCOPE_CLI_WORDS_ESTIMATE_TEXT_H

#include "model/model.h"

/* Without an error, as in exact recordings, only the value. The caller frees the text. */
char *estimate_text_bytes(struct estimate estimate);
char *estimate_text_count(struct estimate estimate);

/* The error as a share of the value: "±12%". NULL if there is no error, or no value. The caller frees the text. */
char *estimate_text_share(struct estimate estimate);

/* The peak of the heap: "8.20 MiB ± 2.10 MiB, at most 18.0 MiB". What it was at most is left out where the error tells
 * the same. The caller frees the text. */
char *estimate_text_peak(const struct totals *totals);

#endif
