/* The end of a recording: figures that are kept in thread-local storage go into the file, and the file is
 * closed. */
#ifndef MALLOSCOPE_RECORD_LIFE_FINISH_H
#define MALLOSCOPE_RECORD_LIFE_FINISH_H

/* To be called when the process ends, or when the program wants its recording to end. */
void finish_recording(void);

#endif
