/* The recorder's options, which the environment holds (MALLOSCOPE_*), and the names of recordings and dumps. */
#ifndef MALLOSCOPE_RECORD_LIFE_OPTIONS_H
#define MALLOSCOPE_RECORD_LIFE_OPTIONS_H

#include "base/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What stacks are made of. */
enum stacks {
    STACKS_BOTH,   /* native frames, Python's in their place, and scopes */
    STACKS_NATIVE, /* native frames alone */
    STACKS_SCOPES, /* scopes alone */
};

struct options {
    const char *output;      /* MALLOSCOPE_OUTPUT: pattern of the recording's name, with %p %e %h %t %n %% */
    uint64_t rate;           /* MALLOSCOPE_RATE, 1 = exact */
    uint64_t depth;          /* MALLOSCOPE_DEPTH */
    uint64_t size_max;       /* MALLOSCOPE_MAX_SIZE, 0 = the default (options_size_max) */
    uint64_t seed;           /* MALLOSCOPE_SEED, 0 = from the kernel */
    bool follow;             /* MALLOSCOPE_FOLLOW */
    bool replace;            /* MALLOSCOPE_FORCE */
    bool is_root;            /* MALLOSCOPE_ROOT: the process that `run` started; true if it is not set */
    bool is_wanted;          /* the environment asks for a recording */
    enum stacks stacks;      /* MALLOSCOPE_STACKS */
    const char *dump;        /* MALLOSCOPE_DUMP: pattern of the names; NULL if not set, as the next three */
    const char *dump_format; /* MALLOSCOPE_DUMP_FORMAT */
    const char *dump_at;     /* MALLOSCOPE_DUMP_AT */
    const char *dump_signal; /* MALLOSCOPE_SIGNAL */
    bool python_objects;     /* MALLOSCOPE_PYTHON_OBJECTS */
    bool thread_frames;      /* MALLOSCOPE_THREAD_FRAMES: the thread's name is the root of every stack */
};

/* Reads the options from the environment. False: it cannot be read yet. */
bool options_read(struct options *ret_options);

/* The environment, also where libc has not set `environ` yet; NULL if it cannot be found. */
char **options_environment(void);

/* The value of a variable of the environment, or NULL. Not by getenv: a program may have its own (shells do). */
char *options_variable(const char *name);

/* Whether the program was started under the name of `env` or a shell: by these, scripts lead to the program that is
 * meant. */
bool options_program_is_wrapper(void);

/* Whether recording need not begin before the first allocation: in a program that was started by another one, and
 * writes no dumps. Many of them allocate nothing, or become yet another program. */
bool options_can_wait(void);

/* The bytes that the recording may grow to. */
uint64_t options_size_max(const struct options *options);

/* Finds out the name of the executable, which %e stands for. Called once, when recording begins. It is not done
 * when a name is made, because dumps are named in signal handlers, too, whose stacks may be small. */
void options_find_program(void);

/* Expands `pattern` into the absolute path of a recording or dump of process `pid`. Each `attempt` makes another
 * name: "x.mscope", "x.PID.mscope", "x.PID.2.mscope" ... False: the path does not fit into `size` bytes. May be
 * called in a signal handler. */
bool options_path(const char *pattern, int pid, unsigned attempt, char *path, size_t size);

/* The first %n of the pattern, which stands for the number of the attempt, or NULL. In %%n there is none. */
const char *options_counter(const char *pattern);

#endif
