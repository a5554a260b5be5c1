/* What is done to the recordings of a run when it has ended, so that they take no more space than they hold.
 *
 * A process that ends by itself cuts its recording to what is used, and removes it if it is empty. One that is killed,
 * that becomes another program, or that has lost access to its file does not. */
#ifndef MALLOSCOPE_CLI_RUN_TRIM_RECORDINGS_H
#define MALLOSCOPE_CLI_RUN_TRIM_RECORDINGS_H

#include "cli/run/run_recordings.h"

/* Cuts the recordings to what they use, and removes those of children that are empty, from the list too. A recording
 * that may be in use is left alone. */
void trim_recordings(struct run_recordings *recordings);

#endif
