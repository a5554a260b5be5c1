#include "cli/terminal/message.h"
#include "base/memory.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void message_hint(const char *text) {
    struct terminal terminal = terminal_of(stderr);
    cleanup_text char *clean = text_clean(text);
    fprintf(stderr, "%shint:%s %s\n", terminal.bold, terminal.plain, clean);
}

int message_problem(const struct problem *problem) {
    struct terminal terminal = terminal_of(stderr);
    cleanup_text char *what = text_clean(problem->what);
    fflush(stdout);
    fprintf(stderr, "%smalloscope:%s %s\n", terminal.alarm, terminal.plain, what);
    if (*problem->remedy) message_hint(problem->remedy);
    return problem->kind ? (int)problem->kind : (int)PROBLEM_FAILURE;
}

int message_error(enum problem_kind kind, const char *remedy, const char *format, ...) {
    struct problem problem = {.kind = kind};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem.what, sizeof problem.what, format, arguments);
    va_end(arguments);
    snprintf(problem.remedy, sizeof problem.remedy, "%s", remedy ? remedy : "");
    return message_problem(&problem);
}

void message_note(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    cleanup_text char *text = text_clean_format(format, arguments);
    va_end(arguments);
    fprintf(stderr, "malloscope: %s\n", text);
}

int message_finish_output(void) {
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    if (errno == EPIPE) return 0;
    const char *remedy =
        errno == ENOSPC ? "make room on the disk, or write somewhere else" : "see where stdout goes";
    return message_error(PROBLEM_FAILURE, remedy, "cannot write the output: %s",
        errno ? strerror(errno) : "an earlier write failed");
}

int message_version(void) {
    puts("malloscope " MALLOSCOPE_VERSION);
    return message_finish_output();
}
