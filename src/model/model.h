/* The model: one consistent reading of a recording, checked, in plain memory, in plain units.
 *
 * A view or an export never touches the recording itself. `model_load` reads a file, a running process or a
 * folder of recordings (merged), checks everything it follows, and returns estimates as doubles: bytes and
 * objects, unbiased, with their variances. Equal stacks are merged.
 *
 *     model ──► stacks[] ──► frames[] (addresses, leaf first) ──► modules[]
 *           └─► threads[], timeline[]
 */
#ifndef MALLOSCOPE_MODEL_MODEL_H
#define MALLOSCOPE_MODEL_MODEL_H

#include "base/problem.h"
#include "core/recording.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An estimate and the variance of its error. Exact figures have variance 0. `unseen` is what may be there
 * without having been sampled once, in 95 of 100 cases at most: it is the error of an estimate that rests on
 * no sample. */
struct estimate {
    double value;
    double variance;
    double unseen;
};

/* Half the width of the 95 % confidence interval. */
double estimate_error(struct estimate estimate);
struct estimate estimate_add(struct estimate a, struct estimate b);

#define BIRTH_PARTS 8 /* a run, so far as it was recorded, in equal parts of time */

/* The figures of one stack, or of any set of stacks: they add up. */
struct figures {
    struct estimate live_bytes, live_objects;
    struct estimate total_bytes, total_objects; /* everything ever allocated */
    double freed_bytes, freed_objects;
    double inherited_bytes; /* live bytes that a forked child took over: in live and peak, not in total */
    double peak_bytes, peak_objects; /* of a stack: its own peak; of a set: the sum, an upper bound */
    struct estimate at_peak_bytes, at_peak_objects; /* live when the whole heap was largest */
    double temporary_objects, temporary_bytes;
    uint64_t samples;      /* allocations sampled: what total_* rests on */
    uint64_t live_samples; /* what live_* rests on */
    double sampled_bytes;  /* plain sizes of all samples */
    double sampled_live_bytes;
    double lifetime[LIFETIME_BUCKETS]; /* freed objects by lifetime, see recording.h */
    uint32_t births[BIRTH_PARTS];      /* live samples by the part of the run they were born in */
    uint32_t ages[LIFETIME_BUCKETS];   /* live samples by age, on the scale of `lifetime` */
    uint64_t oldest; /* ns since start at which the oldest live sample was born, UINT64_MAX = none */
};

void figures_clear(struct figures *figures);
void figures_add(struct figures *sum, const struct figures *figures);

struct model_stack {
    const uint64_t *frames; /* frame words (recording.h), leaf first */
    uint32_t frame_count;
    uint32_t flags;   /* enum stack_flag */
    uint32_t process; /* index into model.processes */
    uint32_t heap;    /* index into model.heaps */
    bool in_own_heap; /* which is not malloc's */
    const char *type; /* of what was allocated, as the program named it; NULL = not known */
    struct figures figures;
};

/* A live sample: when what is live was allocated. */
struct model_live {
    uint32_t stack; /* index into model.stacks */
    float birth;    /* seconds since its process started */
    uint64_t size;
    uint32_t count; /* objects in the block */
};

#define MODULE_ANONYMOUS "[anonymous code]" /* memory that belongs to no file: what JIT compilers make */

struct model_module {
    uint64_t start, end, file_offset;
    uint32_t number; /* in its process */
    bool by_number;  /* frames name it by its number: other modules may have been at its place */
    uint64_t first_seen;
    uint32_t process;
    char *path; /* as mapped in the process; " (deleted)" removed and noted below; what is no file is in
                   brackets: "[vdso]", MODULE_ANONYMOUS */
    bool deleted;
    uint8_t build_id[31];
    uint8_t build_id_size;
    uint64_t inode;
    uint32_t device_major, device_minor;
};

#define HEAP_MALLOC "malloc"         /* name of the heap that malloc and its family serve */
#define HEAP_PYTHON "python objects" /* and of that of a Python interpreter, if it is watched */

/* malloc's heap, or one that the program manages itself and told us about. */
struct model_heap {
    uint32_t process, number;
    const char *name;
    uint64_t rate; /* mean bytes between samples; 1 = exact */
};

/* A function of an interpreted language, as FRAME_PYTHON frames name it. */
struct model_code {
    char *name;
    const char *file;
    uint32_t first_line;
};

struct model_thread {
    uint32_t process;
    int32_t tid;
    bool running;
    char name[17];
    uint64_t start_time, end_time; /* ns; end 0 = not ended */
    double exact_bytes;            /* allocated by this thread, exact */
    bool exact_is_complete;        /* false: the program was killed, up to one sampling interval is missing */
    uint64_t samples;
};

struct model_moment {
    double seconds; /* since start, middle of the bucket */
    double width;
    double live_max, live_last, allocated;
    uint64_t events;
};

/* KILLED: ended without notice: by a signal, or by becoming another program (exec). */
enum process_state { PROCESS_RUNNING, PROCESS_FINISHED, PROCESS_KILLED };

struct model_process {
    char *source;            /* path of the recording */
    int32_t pid, parent_pid; /* as it knew them itself */
    int32_t running_pid;     /* as it is known here, which differs for containers; 0 if it has ended */
    enum process_state state;
    bool attached;    /* recorded from outside: the program may have run before and may run on */
    bool is_snapshot; /* a copy made while the program ran; `duration` says when */
    uint32_t flags;   /* enum recording_flag */
    uint32_t filter;  /* enum free_filter */
    uint64_t rate;
    char *executable;   /* texts that the recording lacks are "[unknown]" */
    char *command_line; /* for people: arguments joined by blanks, quoted where needed */
    char *allocator;
    uint64_t start_realtime; /* ns */
    double duration;         /* seconds between start and last event (or now, if it runs) */
    double peak_seconds;
    uint64_t file_bytes;     /* size of the recording */
    uint64_t recorder_bytes; /* memory the recorder takes in the program: pages of the recording in use */
    bool has_names;          /* it came out of an archive with names: */
    uint32_t names;          /* which, of model.names */
    uint32_t names_space;    /* and which part of them is about this process */
    size_t first_heap;       /* of model.heaps: malloc's */
    size_t first_code, code_count; /* of model.codes */
    size_t first_text, text_count; /* its scopes', types', threads' and heaps' names, of model.texts */
};

/* Names that came with recordings, out of an archive. */
struct model_names {
    void *bytes; /* symbol/symbol_store.h; not checked yet */
    size_t size;
    char *path; /* of the archive */
};

struct totals {
    struct figures sum; /* over all stacks; sum.peak_* are not the global peak */
    double peak_bytes;  /* global peak of live bytes; of several processes the sum, an upper bound */
    double peak_objects;
    double exact_total_bytes; /* by the threads' own counters */
    bool exact_is_complete;
    uint64_t drops[DROP_KINDS];
    uint64_t drops_total;
    uint64_t unknown_frees;
    uint64_t recorder_bytes;
};

/* How good the stacks are. */
struct health {
    double complete;    /* share of samples whose stack reaches the start of its thread, uncut */
    uint64_t truncated; /* number of samples whose stack does not */
    double mean_depth;
    const char *confidence; /* "high" (under 5 % truncated), "medium" (under 20 %), "low" */
};

/* A sampled block that is live. */
struct model_sample {
    uint64_t address, size;
    uint64_t birth; /* ns since its process's start */
    double weight;  /* bytes that it stands for */
    uint32_t stack; /* its number in the model */
};

struct model {
    struct model_process *processes;
    size_t process_count;
    struct model_stack *stacks; /* by process, in the order in which they were first met */
    size_t stack_count;
    struct model_live *live;
    size_t live_count;
    struct model_module *modules; /* sorted by process, start */
    size_t module_count;
    const struct model_module **numbered; /* all of them, sorted by process, number */
    struct module_range *module_ranges;   /* see module_map.h */
    size_t module_range_count;
    struct model_heap *heaps; /* sorted by process, number; each process has malloc's */
    size_t heap_count;
    size_t malloc_heap_count; /* of these, malloc's: one for each process and rate */
    bool shows_heaps; /* also if there are none but malloc's: it is compared with one that has others */
    struct model_code *codes;
    size_t code_count;
    char **texts; /* names that programs gave */
    size_t text_count;
    struct model_thread *threads;
    size_t thread_count;
    struct model_moment *timeline; /* of the only process, or empty for several */
    size_t moment_count;
    struct model_names *names;
    size_t names_count;
    struct model_sample *samples; /* if asked for by `with_samples` */
    size_t sample_count;
    struct totals totals;
    struct health health;
    bool exact;            /* every allocation was recorded */
    bool levels_only;      /* nothing is known of single blocks: only the size of the memory over time */
    bool was_paused;       /* recording was off for a time: the threads' own counters went on */
    bool is_partial;       /* what some allocators of the program hand out was not seen */
    uint64_t rate;         /* largest of the heaps' rates */
    uint64_t *frame_store; /* what stacks[].frames point into */
    /* What could not be read or is not certain, for people, one sentence a line; NULL if all is well. A
     * damaged recording is loaded as far as it can be, and this says what is missing. */
    char *warning;
    bool damaged; /* something of a recording is missing or cannot be trusted; `warning` says what */
};

struct archive_writer;

/* What to load, and how. Zeroed fields ask for nothing special. */
struct model_load_options {
    /* Each source is the path of a recording or of an archive, a folder of recordings, or the number of a running
     * process. Several recordings are added up; one that is named twice counts once. */
    const char *const *sources;
    size_t source_count;

    /* If not NULL, live figures count only the blocks that were allocated in so many seconds after the start and are
     * still live. Blocks that were freed since are unknown: a recording keeps no history of single blocks. */
    const double *live_born_until;

    bool with_samples; /* fill `samples` in */

    /* Do not ask the kernel how much of the recording is resident in the running program; `recorder_bytes` is an upper
     * bound then. Asking holds the program up for a moment, which `top` must not do every second. */
    bool skip_resident_size;

    struct archive_writer *archive; /* also gets each recording, just as it was read; NULL: none */
};

/* On success the caller frees `*ret_model` with model_free. A recording that cannot be read is left out, and the
 * model's warning says so, as long as another one can be read. A source that does not exist is an error. */
int model_load(const struct model_load_options *options, struct model **ret_model, struct problem *problem);
void model_free(struct model *model);

/* Whether the programs have told of heaps besides malloc's. If not, views need not tell heaps apart. */
static inline bool model_has_heaps(const struct model *model) {
    return model->shows_heaps || model->heap_count > model->malloc_heap_count;
}

/* What a live sample stands for: bytes and objects that, summed over the samples of a stack, are its live
 * figures. */
void model_live_weight(
    const struct model *model, const struct model_live *live, double *ret_bytes, double *ret_objects);

/* The module that covers a plain address in `process`, or NULL: of several, the one seen last. */
const struct model_module *model_find_module(const struct model *model, uint32_t process, uint64_t address);

/* Where a frame word of a process leads: to a return address in a module, or in none (NULL) that is known. Of
 * a module that was opened at several places, the first place stands for all. Address 0: the frame is not
 * native, or the recording lacks the module that it names. */
struct model_place {
    const struct model_module *module;
    uint64_t address;
};
struct model_place model_find_place(const struct model *model, uint32_t process, uint64_t word);

/* The name that a process gave under this number, or NULL: that of a FRAME_SCOPE or FRAME_THREAD. */
const char *model_find_text(const struct model *model, uint32_t process, uint64_t number);

/* The function that a FRAME_PYTHON names, or NULL. */
const struct model_code *model_find_code(const struct model *model, uint32_t process, uint64_t word);

/* The recordings that a running process has mapped: path of the one it writes. Caller frees `*ret_path`. */
int model_find_recording_of(int pid, char **ret_path, struct problem *problem);

/* The recording that a process has mapped, its own before any other: of a collector that is that of the
 * process it is attached to. NULL if there is none, or none that can be read. The caller frees it. */
char *model_find_recording_held_by(int pid);

/* Copies the recording of `source` (not a folder) into the new file `path`, consistent and no larger than
 * what is used, readable on its own: of a running program it reads as if that had ended now. The file appears
 * whole or not at all; one that is there is left alone unless `replace`. */
int model_copy(const char *source, const char *path, bool replace, struct problem *problem);

#endif
