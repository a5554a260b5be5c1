#ifndef MALLOSCOPE_RECORD_INTERCEPT_EXPORT_H
#define MALLOSCOPE_RECORD_INTERCEPT_EXPORT_H

/* For functions that the program calls. All other symbols of the library are hidden. */
#define EXPORT __attribute__((visibility("default")))

/* For functions that the program calls or jumps to straight: a caller written in assembly may not have aligned the
 * stack, and C code stores registers of 16 bytes. */
#if defined(__x86_64__)
#define ANY_STACK __attribute__((force_align_arg_pointer))
#else
#define ANY_STACK /* the processor itself insists on the alignment */
#endif

#endif
