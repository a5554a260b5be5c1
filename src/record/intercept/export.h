#ifndef MALLOSCOPE_RECORD_INTERCEPT_EXPORT_H
#define MALLOSCOPE_RECORD_INTERCEPT_EXPORT_H

/* For functions that the program calls. All other symbols of the library are hidden. */
#define EXPORT __attribute__((visibility("default")))

#endif
