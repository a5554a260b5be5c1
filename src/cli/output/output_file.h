/* Writing a format to a file or to stdout, as `export`, `flame` and `report --html` do. */
#ifndef MALLOSCOPE_CLI_OUTPUT_OUTPUT_FILE_H
#define MALLOSCOPE_CLI_OUTPUT_OUTPUT_FILE_H

#include "format/format.h"

struct output_options {
    const char
        *path;  /* "-" is stdout; NULL: a name made from the source, or stdout (output_file_is_stdout) */
    bool force; /* replace a file that is there */
    bool quiet; /* do not say what was written */
};

/* The options of a command that writes a file. */
#define OUTPUT_RULES(options)                                                                                \
    {'o', "output", OPTION_FILE, &(options).path, "FILE", .help = "where to write; - is stdout"},            \
        {'f', "force", OPTION_ON, &(options).force, NULL, .help = "replace the file if it exists"}, {        \
        'q', "quiet", OPTION_ON, &(options).quiet, NULL, .help = "do not say what was written"               \
    }

/* Without -o, text goes to stdout, and everything when that is a file or a pipe. */
bool output_file_is_stdout(const struct output_options *options, const struct format *format);

/* Prints what goes wrong. Returns 0 or the exit code. A file is named after the sources. */
int output_file_write(const struct output_options *options, const struct format *format,
    const struct format_input *input, char **sources, size_t source_count);

#endif
