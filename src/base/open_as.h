/* Opening a file that another user has named, with no more rights than that user has. */
#ifndef MALLOSCOPE_BASE_OPEN_AS_H
#define MALLOSCOPE_BASE_OPEN_AS_H

#include <stdint.h>

#define OPEN_AS_NOBODY INT64_C(-1) /* a user who is not known: has the rights that everybody has */

/* Opens the regular file `path`, which begins with a slash, for reading, with `root` as "/". The path is followed one
 * component at a time, each by the descriptor of the one before, so that nobody can exchange one that was looked at:
 *   - If `user` is somebody else than the caller: folders must let `user` pass and the file must let `user` read it,
 *     as their owner or by what everybody may. What `user` may as the member of a group does not count.
 *   - Links are followed if they belong to `user` or to root: a third user could have put them there.
 * Returns a descriptor or a negative errno. */
int open_as(const char *root, const char *path, int64_t user);

#endif
