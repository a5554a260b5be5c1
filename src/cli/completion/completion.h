/* Scripts that complete command lines of malloscope, one for each shell. A script has two parts: what is the
 * same for all commands is a file in the shell's own language (malloscope.bash, .zsh and .fish),
 * which is a part of the command; before it come the tables of the commands, written in that language. */
#ifndef MALLOSCOPE_CLI_COMPLETION_COMPLETION_H
#define MALLOSCOPE_CLI_COMPLETION_COMPLETION_H

#include "cli/command/command.h"

#include <stdio.h>

/* The fixed parts. */
extern const char completion_rules_bash[], completion_rules_zsh[], completion_rules_fish[];

void completion_write_bash(FILE *out);
void completion_write_zsh(FILE *out);
void completion_write_fish(FILE *out);

/* What can be said for a value of this option, separated by blanks: its choices, or the names of signals.
 * NULL if there is no such list. The caller frees it. */
char *completion_values(const struct option_rule *option);

/* The same of choices alone. */
char *completion_join(const char *const *choices);

/* The help of an option in one line. The caller frees it. */
char *completion_summary(const struct option_rule *option);

/* Writes text within a pair of single quotes; each character of `special` gets a backslash. A quote is
 * written as `quote`. */
void completion_quote(FILE *out, const char *text, const char *special, const char *quote);

#endif
