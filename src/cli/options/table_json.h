/* The tables of the commands, for programs: what the manual is made of and the tests ask. */
#ifndef MALLOSCOPE_CLI_OPTIONS_TABLE_JSON_H
#define MALLOSCOPE_CLI_OPTIONS_TABLE_JSON_H

#include "cli/command/command.h"

#include <stdio.h>

/* One command, or all if it is NULL. */
void table_write_json(FILE *out, const struct command *command);

#endif
