/* Messages for the user, on stderr. */
#ifndef MALLOSCOPE_CLI_TERMINAL_MESSAGE_H
#define MALLOSCOPE_CLI_TERMINAL_MESSAGE_H

#include "base/problem.h"

/* "hint: ...": what the user can do next. */
void message_hint(const char *text);

/* Prints what went wrong and what the user can do. Returns the exit code, which is the kind of the problem. */
int message_problem(const struct problem *problem);

/* The same for a problem that is given in parts; `remedy` may be NULL. */
int message_error(enum problem_kind kind, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "malloscope: ...": one line of information. The text is cleaned (text_clean). */
void message_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Every command calls this after its last output. It flushes stdout, prints an error if something could not be
 * written, and returns the exit code. A reader that has gone away (`| head`) is no failure. */
int message_finish_output(void);

/* Prints the version. Returns the exit code. */
int message_version(void);

#endif
