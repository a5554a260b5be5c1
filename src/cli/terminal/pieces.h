/* Lines made of pieces, with dots in between: "live 12 MiB · peak 40 MiB · no drops". */
#ifndef MALLOSCOPE_CLI_TERMINAL_PIECES_H
#define MALLOSCOPE_CLI_TERMINAL_PIECES_H

#include <stddef.h>
#include <stdio.h>

/* A new line begins where the next piece would not fit into `width`. Set `out`, `width` and `indent`, add the
 * pieces, and call pieces_end. */
struct pieces {
    FILE *out;
    size_t width;       /* columns; 0 = no limit */
    size_t used;        /* columns of the current line */
    const char *indent; /* printed at the start of each line */
};

void pieces_add(struct pieces *pieces, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pieces_end(struct pieces *pieces);

#endif
