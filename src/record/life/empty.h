/* Recordings that hold nothing. A program that starts many others (a build, a shell script) would leave a file for each
 * of them, and most of these have recorded nothing. */
#ifndef MALLOSCOPE_RECORD_LIFE_EMPTY_H
#define MALLOSCOPE_RECORD_LIFE_EMPTY_H

#include <stdbool.h>

/* Whether this process's recording can be removed when the process ends: nobody has asked for this very one, and it
 * holds no sample, no free and no drop of its own. */
bool empty_may_go(void);

#endif
