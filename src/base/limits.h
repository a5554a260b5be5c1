/* Defaults that users are told of, and limits that more than one folder must agree on.
 *
 * Limits that concern one file alone stay in that file. Header-only, for the target too; assembly code may include
 * it, so that there is nothing but macros here. */
#ifndef MALLOSCOPE_BASE_LIMITS_H
#define MALLOSCOPE_BASE_LIMITS_H

/* ---- defaults of options: the library (record/life), `run` and `attach` ---- */

/* The sampling interval: mean bytes between two samples. As people write it in help texts, too. */
#define DEFAULT_RATE      (512 << 10)
#define DEFAULT_RATE_TEXT "512K"

/* Frames that are kept of a stack, and what may be asked for: the outermost and the innermost at least. */
#define DEFAULT_DEPTH      256
#define DEFAULT_DEPTH_TEXT "256"
#define DEPTH_LEAST        2
#define DEPTH_MOST         4096
#define DEPTH_MOST_TEXT    "4096"

/* Bytes that a recording may grow to: of the first, in a program that is recorded at the default sampling interval; in
 * proportion more at smaller intervals, up to the second. */
#define DEFAULT_SIZE_SAMPLED      (UINT64_C(48) << 20)
#define DEFAULT_SIZE_SAMPLED_TEXT "48M"
#define DEFAULT_SIZE_MAX          (UINT64_C(4) << 30)
#define DEFAULT_SIZE_MAX_TEXT     "4G"

/* Names of files: %e is the program, %p the process, %n a number that counts the dumps of a process. */
#define DEFAULT_RECORDING_PATTERN "malloscope.%e.%p.mscope"
#define DEFAULT_DUMP_PATTERN      "malloscope.%e.%p.%n.heap"

/* ---- the recording: what its writer gives out, and its readers take for damaged beyond ---- */

/* Heaps, malloc's included. The entry code of the library compares with it. */
#define HEAPS_MOST 1024

/* Names (of scopes, types, heaps, files), and pieces of interpreted code. */
#define NAMES_MOST        32768
#define CODE_OBJECTS_MOST 32768

/* ---- the system ---- */

/* The kernel's names of threads, with the zero at the end. */
#define THREAD_NAME_SIZE 16

/* Pages are this large, or a multiple of it. */
#define PAGE_SIZE_MIN UINT64_C(4096)

#endif
