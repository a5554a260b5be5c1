/* The text of a dump: gathered in the buffer of its file, and written when the buffer is full.
 *
 * Text goes from the beginning of the file to its end. Only dump_text_end says whether all of it was written:
 * the functions before it go on after an error, and dump_text_end returns the first one. */
#ifndef MALLOSCOPE_RECORD_DUMP_DUMP_TEXT_H
#define MALLOSCOPE_RECORD_DUMP_DUMP_TEXT_H

#include "record/dump/dump_file.h"

void dump_text(struct dump_file *file, const char *text);
void dump_text_bytes(struct dump_file *file, const void *bytes, size_t size);
void dump_text_decimal(struct dump_file *file, uint64_t number);
/* With at least `digits_least` digits. */
void dump_text_hex(struct dump_file *file, uint64_t number, int digits_least);

/* Writes what is left in the buffer. Returns 0, or a negative errno. */
int dump_text_end(struct dump_file *file);

#endif
