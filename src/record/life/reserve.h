/* Reserved space: memory for samples that are taken when the recording's file cannot be opened any more.
 *
 * The recorder keeps no descriptor of its file: to let the file grow, it opens it again by its path. A program
 * that is about to lose access to files, or to system calls, gets space in advance. What does not fit into it is
 * dropped and counted. */
#ifndef MALLOSCOPE_RECORD_LIFE_RESERVE_H
#define MALLOSCOPE_RECORD_LIFE_RESERVE_H

#include <stdbool.h>

/* To be called while files can still be opened. `calls_end`: system calls will not be possible either, so the space is
 * taken from the disk at once. Otherwise it is taken when it is needed. */
void reserve_space(bool calls_end);

#endif
