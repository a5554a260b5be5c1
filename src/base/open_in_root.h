/* Opening files as a program with another root folder sees them: one in a container or a chroot, or on
 * another machine whose files lie in a folder here. */
#ifndef MALLOSCOPE_BASE_OPEN_IN_ROOT_H
#define MALLOSCOPE_BASE_OPEN_IN_ROOT_H

/* Opens the regular file `path` for reading, with `root` as "/": also symbolic links that begin with a slash stay
 * below it. `flags` and the result are those of open_regular. */
int open_in_root(const char *root, const char *path, int flags);

#endif
