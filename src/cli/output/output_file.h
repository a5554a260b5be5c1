/* Writing a format to a file or to stdout, as `export`, `flame` and `report --html` do. */
#ifndef MALLOSCOPE_CLI_OUTPUT_OUTPUT_FILE_H
#define MALLOSCOPE_CLI_OUTPUT_OUTPUT_FILE_H

#include "format/format.h"

struct output_options {
    const char *path; /* of -o: "-" is stdout; NULL: see output_file_is_stdout and output_file_write */
    bool force;       /* replace a file that exists */
    bool is_public;   /* the umask decides who may read the file; otherwise its owner alone may */
    bool quiet;       /* do not say what was written */
};

#define PUBLIC_HELP "let others read the file, as far as the umask allows"

/* The options that every command has which writes a file. */
#define OUTPUT_RULES(options)                                                                                \
    {'o', "output", OPTION_FILE, &(options).path, "FILE", .help = "where to write; - is stdout"},            \
        {'f', "force", OPTION_ON, &(options).force, NULL, .help = "replace the file if it exists"},          \
        {0, "public", OPTION_ON, &(options).is_public, NULL, .help = PUBLIC_HELP}, {                         \
        'q', "quiet", OPTION_ON, &(options).quiet, NULL, .help = "do not say what was written"               \
    }

/* With -o: whether that is "-". Without: text goes to stdout; other formats do so if stdout is no terminal. */
bool output_file_is_stdout(const struct output_options *options, const struct format *format);

/* Writes to stdout or to a file. Without -o the file is named after the sources. Prints what goes wrong. Returns 0 or
 * the exit code. */
int output_file_write(const struct output_options *options, const struct format *format,
    const struct format_input *input, char **sources, size_t source_count);

#endif
