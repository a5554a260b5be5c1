/* Files that belong to the command. */
#ifndef MALLOSCOPE_CLI_RUN_INSTALLED_H
#define MALLOSCOPE_CLI_RUN_INSTALLED_H

/* Looks for a file that can be read in each of the folders, up to NULL; one that does not begin with a slash
 * starts at the folder of the running command. The caller frees the path; NULL if there is none. */
char *installed_find(const char *name, const char *const folders[]);

#endif
