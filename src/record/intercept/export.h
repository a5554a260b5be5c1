#ifndef MALLOSCOPE_RECORD_INTERCEPT_EXPORT_H
#define MALLOSCOPE_RECORD_INTERCEPT_EXPORT_H

/* For functions that the program calls; everything else in the library is hidden. */
#define EXPORT __attribute__((visibility("default")))

#endif
