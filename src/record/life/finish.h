/* The end of a recording: what lives in thread-local storage goes into it. */
#ifndef MALLOSCOPE_RECORD_LIFE_FINISH_H
#define MALLOSCOPE_RECORD_LIFE_FINISH_H

/* The program ends, or wants no more of its recording. */
void finish_recording(void);

#endif
