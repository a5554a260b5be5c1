#include "cli/output/output_file.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/unfinished_file.h"
#include "cli/terminal/message.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The name of an output file that the user did not name, in the current folder:
 *     FOLDER/malloscope.server.12.mscope   malloscope.server.12.pb.gz
 *     4711                                 malloscope.4711.pb.gz
 *     recordings/                          recordings.pb.gz
 *     several sources                      malloscope.merged.pb.gz */
static char *default_name(char **sources, size_t count, const char *extension) {
    const char *source = count == 1 ? sources[0] : "malloscope.merged";
    cleanup_text char *name = memory_copy_text(source);
    size_t length = strlen(name);
    while (length > 1 && name[length - 1] == '/') name[--length] = 0;
    const char *base = path_last_part(name);
    const char *ending = ".mscope";
    size_t base_length = strlen(base);
    if (base_length > strlen(ending) && strcmp(base + base_length - strlen(ending), ending) == 0)
        base_length -= strlen(ending);
    bool is_number = base_length && strspn(base, "0123456789") >= base_length;
    return memory_format_text("%s%.*s.%s", is_number ? "malloscope." : "", (int)base_length, base, extension);
}

/* Unlinks the file that is to be replaced. It may be the recording of a running program, which has it mapped and
 * would get SIGBUS if the file were truncated. An unlinked file stays whole for the program. */
static void make_way(const char *path) {
    struct stat status;
    if (stat(path, &status) == 0 && S_ISREG(status.st_mode)) unlink(path);
}

static int open_output(const struct output_options *options, const char *path, FILE **ret_out) {
    if (options->force) make_way(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (options->force ? O_TRUNC : O_EXCL),
        options->is_public ? 0666 : 0600);
    if (fd < 0) {
        int error = errno;
        const char *remedy = error == EEXIST   ? "replace it with -f, or choose another name with -o"
                             : error == ENOENT ? "make its folder first, or choose another place with -o"
                                               : "choose another place with -o";
        return message_error(
            problem_kind_of_errno(error), remedy, "cannot write '%s': %s", path, strerror(error));
    }
    *ret_out = fdopen(fd, "w");
    if (*ret_out) return 0;
    close(fd);
    return message_error(PROBLEM_FAILURE, "try again", "cannot write '%s': %s", path, strerror(errno));
}

/* A file that could not be written whole is removed. */
static int write_file(const struct output_options *options, const struct format *format,
    const struct format_input *input, const char *path) {
    FILE *out;
    int code = open_output(options, path, &out);
    if (code) return code;
    struct problem problem = {0};
    struct stat status = {0};
    bool is_regular = fstat(fileno(out), &status) == 0 && S_ISREG(status.st_mode);
    if (is_regular) unfinished_file_begin(path);
    struct progress progress;
    progress_start(&progress, "writing");
    int r = format_write(format, input, out, &problem);
    progress_end(&progress);
    if (r == 0 && fflush(out) == 0) fstat(fileno(out), &status);
    if (fclose(out) != 0 && r == 0)
        r = problem_set(&problem, PROBLEM_FAILURE, "choose another place with -o", "cannot write '%s': %s",
            path, strerror(errno));
    unfinished_file_end();
    if (r < 0) {
        if (is_regular) unlink(path);
        return message_problem(&problem);
    }
    if (!options->quiet)
        message_note("wrote %s (%s, %s)", path, format->name, units_bytes((double)status.st_size).text);
    return 0;
}

static int write_stdout(const struct format *format, const struct format_input *input) {
    struct problem problem = {0};
    errno = 0;
    if (format_write(format, input, stdout, &problem) < 0 && errno != EPIPE) {
        /* Drop the rest of the buffer: at exit, stdio would try to write it and fail again. */
        __fpurge(stdout);
        clearerr(stdout);
        return message_problem(&problem);
    }
    return message_finish_output();
}

bool output_file_is_stdout(const struct output_options *options, const struct format *format) {
    if (options->path) return strcmp(options->path, "-") == 0;
    return format->kind == FORMAT_TEXT || !isatty(STDOUT_FILENO);
}

int output_file_write(const struct output_options *options, const struct format *format,
    const struct format_input *input, char **sources, size_t source_count) {
    if (output_file_is_stdout(options, format)) return write_stdout(format, input);
    cleanup_text char *name = default_name(sources, source_count, format->extension);
    return write_file(options, format, input, options->path ? options->path : name);
}
