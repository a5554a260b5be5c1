/* Scripts that complete command lines of malloscope, one for each shell. A script has two parts. The first is made
 * here: the tables of the commands, in the language of the shell. The second is the same for all commands: a file in
 * the language of the shell (malloscope.bash, .zsh and .fish), which embed.py puts into the executable. */
#ifndef MALLOSCOPE_CLI_COMPLETION_COMPLETION_H
#define MALLOSCOPE_CLI_COMPLETION_COMPLETION_H

#include "cli/command/command.h"

#include <stdio.h>

/* The second parts, made by embed.py. */
extern const char completion_rules_bash[], completion_rules_zsh[], completion_rules_fish[];

void completion_write_bash(FILE *out);
void completion_write_zsh(FILE *out);
void completion_write_fish(FILE *out);

/* All values that the option can have, separated by blanks: its choices, or the names of signals. NULL if they cannot
 * be listed. The caller frees the text. */
char *completion_values(const struct option_rule *option);

/* The choices, separated by blanks; NULL if there are none. The caller frees the text. */
char *completion_join(const char *const *choices);

/* The help of an option in one line. The caller frees the text. */
char *completion_summary(const struct option_rule *option);

/* Writes a text that stands between single quotes, without these. A single quote in the text is written as `quote`;
 * each character that is in `special` gets a backslash. */
void completion_quote(FILE *out, const char *text, const char *special, const char *quote);

#endif
