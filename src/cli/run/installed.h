/* Finding the files that are installed together with the command. */
#ifndef MALLOSCOPE_CLI_RUN_INSTALLED_H
#define MALLOSCOPE_CLI_RUN_INSTALLED_H

/* The path of the first file of that name that can be read in one of the folders; the list ends with NULL. A folder
 * that does not begin with a slash is relative to the folder of the running executable. The caller frees the path.
 * NULL if there is no such file. */
char *installed_find(const char *name, const char *const folders[]);

/* The path of the executable that has all commands (malloscope_commands.c), as installed_find gives it. */
#define INSTALLED_COMMANDS "malloscope-commands"
char *installed_commands(void);

#endif
