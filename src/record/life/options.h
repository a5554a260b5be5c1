/* What the recorder is told by the environment, and the name of the recording. */
#ifndef MALLOSCOPE_RECORD_LIFE_OPTIONS_H
#define MALLOSCOPE_RECORD_LIFE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEFAULT_RATE     (512u << 10)
#define DEFAULT_DEPTH    256u
#define DEPTH_MOST       4096u
#define DEFAULT_SIZE_MAX (UINT64_C(4) << 30)

/* What stacks are made of. */
enum stacks { STACKS_BOTH, STACKS_NATIVE, STACKS_SCOPES };

struct options {
    const char *output;      /* pattern: %p %e %h %t %n %% */
    uint64_t rate;           /* MALLOSCOPE_RATE, 1 = exact */
    uint64_t depth;          /* MALLOSCOPE_DEPTH */
    uint64_t size_max;       /* MALLOSCOPE_MAX_SIZE */
    uint64_t seed;           /* MALLOSCOPE_SEED, 0 = from the kernel */
    bool follow;             /* MALLOSCOPE_FOLLOW */
    bool replace;            /* MALLOSCOPE_FORCE */
    bool is_root;            /* this is the program that `run` started, or nobody said which one is */
    bool is_wanted;          /* the environment asks for a recording */
    enum stacks stacks;      /* MALLOSCOPE_STACKS */
    const char *dump;        /* MALLOSCOPE_DUMP, pattern of the dumps' names; these are NULL if not given */
    const char *dump_format; /* MALLOSCOPE_DUMP_FORMAT */
    const char *dump_at;     /* MALLOSCOPE_DUMP_AT */
    const char *dump_signal; /* MALLOSCOPE_SIGNAL */
    bool python_objects;     /* MALLOSCOPE_PYTHON_OBJECTS */
    bool thread_frames;      /* MALLOSCOPE_THREAD_FRAMES: the thread's name is the root of every stack */
};

/* False when the environment cannot be read yet. */
bool options_read(struct options *ret_options);

/* Finds out what %e stands for: once, by whoever begins the recording. Names are made in signal handlers too,
 * whose stack may be small. */
void options_find_program(void);

/* Expands `pattern` into the absolute path of a recording or dump of process `pid`. `attempt` > 0 makes names
 * that differ from the first one: "x.mscope", "x.PID.mscope", "x.PID.2.mscope" ... Returns false when it does
 * not fit. May be called in a signal handler. */
bool options_path(const char *pattern, int pid, unsigned attempt, char *path, size_t size);

/* Where the name counts: at its first %n, which is not behind a percent sign that is one (%%n). Or NULL. */
const char *options_counter(const char *pattern);

#endif
