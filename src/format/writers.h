/* The functions that write the formats, for the list in format.c. */
#ifndef MALLOSCOPE_FORMAT_WRITERS_H
#define MALLOSCOPE_FORMAT_WRITERS_H

#include "format/format.h"

int pprof_write(const struct format_input *input, FILE *out, struct problem *problem);
int heap_text_write(const struct format_input *input, FILE *out, struct problem *problem);
int heap_text_write_v2(const struct format_input *input, FILE *out, struct problem *problem);
int speedscope_write(const struct format_input *input, FILE *out, struct problem *problem);
int chrome_write(const struct format_input *input, FILE *out, struct problem *problem);
int chrome_write_v1(const struct format_input *input, FILE *out, struct problem *problem);
int collapsed_write(const struct format_input *input, FILE *out, struct problem *problem);
int json_dump_write(const struct format_input *input, FILE *out, struct problem *problem);
int html_write(const struct format_input *input, FILE *out, struct problem *problem);
int csv_write(const struct format_input *input, FILE *out, struct problem *problem);

#endif
