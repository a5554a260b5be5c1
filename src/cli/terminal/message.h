/* What the command says on stderr. */
#ifndef MALLOSCOPE_CLI_TERMINAL_MESSAGE_H
#define MALLOSCOPE_CLI_TERMINAL_MESSAGE_H

#include "base/problem.h"

/* What to do next. */
void message_hint(const char *text);

/* Prints what happened and what to do. Returns the exit code: the kind. */
int message_problem(const struct problem *problem);

/* The same from the parts; `remedy` may be NULL. */
int message_error(enum problem_kind kind, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* One line, cleaned, behind "malloscope: ". */
void message_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* To be called at the end of what a command printed: did all of it reach stdout? Returns the exit code. A
 * reader that went away (`| head`) is no failure. */
int message_finish_output(void);

/* Prints which version this is. Returns the exit code. */
int message_version(void);

#endif
