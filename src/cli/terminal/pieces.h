/* A line made of pieces: "live 12 MiB · peak 40 MiB · no drops". */
#ifndef MALLOSCOPE_CLI_TERMINAL_PIECES_H
#define MALLOSCOPE_CLI_TERMINAL_PIECES_H

#include <stddef.h>
#include <stdio.h>

/* Prints pieces one after the other, separated by dots, going to a new line where the next would not fit. */
struct pieces {
    FILE *out;
    size_t width; /* 0 = no limit */
    size_t used;
    const char *indent;
};

void pieces_add(struct pieces *pieces, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pieces_end(struct pieces *pieces);

#endif
