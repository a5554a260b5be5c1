/* Opening files whose names come from a recording, a program or its files. Such a name may lead to anything: opening
 * a pipe waits for its writer, and opening a device can do harm by itself (/dev/watchdog starts to count down). So a
 * file is looked at first, by a descriptor that does not open it (O_PATH), and opened through that descriptor: nobody
 * can put another file in its place in between. */
#ifndef MALLOSCOPE_BASE_OPEN_REGULAR_H
#define MALLOSCOPE_BASE_OPEN_REGULAR_H

/* Opens a regular file for reading, as openat(2) does. `flags` is 0 or O_NOFOLLOW. Returns a descriptor or a negative
 * errno; -ENOTSUP: it is no regular file, or one of those that the kernel makes up (/proc, /sys). */
int open_regular(int folder, const char *path, int flags);

/* The same for a file that the caller has a descriptor of O_PATH of, which is closed. A negative errno instead of
 * that descriptor is passed on. */
int open_regular_found(int found);

#endif
