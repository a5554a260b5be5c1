/* The model: what recordings hold, checked, in plain memory and plain units.
 *
 * Views and formats work on a model and never touch a recording. model_load takes a snapshot of each recording,
 * checks everything that it follows, and turns the recorder's fixed-point numbers into estimates of bytes and
 * objects with their variances. Stacks of a process that are equal become one.
 *
 *     model ──► processes[]
 *           ├─► stacks[] ──► frames[] (frame words, leaf first) ──► modules[], codes[], texts[]
 *           │        └─────► figures, heaps[]
 *           ├─► live[]  (the live samples, by stack)
 *           └─► threads[], timeline[]
 */
#ifndef MALLOSCOPE_MODEL_MODEL_H
#define MALLOSCOPE_MODEL_MODEL_H

#include "base/problem.h"
#include "core/recording.h"
#include "model/figures.h"
#include "model/unrecorded_list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model_stack {
    const uint64_t *frames; /* frame words (core/recording.h), leaf first */
    uint32_t frame_count;
    uint32_t flags;   /* enum stack_flag */
    uint32_t process; /* index into model.processes */
    uint32_t heap;    /* index into model.heaps */
    bool in_own_heap; /* that heap is one that the program manages itself, not malloc's */
    const char *type; /* of what was allocated, as the program named it; NULL: not known */
    struct figures figures;
};

/* A sampled block that is live: its size, and when it was allocated. */
struct model_live {
    uint32_t stack; /* index into model.stacks */
    float birth;    /* seconds since its process started */
    uint64_t size;
    uint32_t count; /* objects in the block */
};

#define MODULE_ANONYMOUS                                                                                     \
    "[anonymous code]" /* path of memory that belongs to no file: what JIT compilers make */

/* An executable mapping of a file, or of code that is in no file. */
struct model_module {
    uint64_t start, end, file_offset;
    uint32_t number; /* within its process */
    bool
        by_number; /* frames name it by its number, since another module may have been at the same addresses */
    uint64_t first_seen;
    uint32_t process; /* index into model.processes */
    char *path;       /* as mapped in the process; in brackets if it is no file: "[vdso]", MODULE_ANONYMOUS */
    bool deleted;     /* the kernel showed the file as deleted; `path` is without " (deleted)" */
    uint8_t build_id[31];
    uint8_t build_id_size;
    uint64_t inode;
    uint32_t device_major, device_minor;
};

#define HEAP_MALLOC "malloc"         /* name of the heap that malloc and its family serve */
#define HEAP_PYTHON "python objects" /* name of the heap of a Python interpreter, if it is recorded */

/* malloc's heap, or one that the program manages itself and has registered. */
struct model_heap {
    uint32_t process, number;
    const char *name;
    uint64_t rate; /* sampling interval: mean number of bytes between samples; 1: every block is recorded */
};

/* A function of an interpreted language, which frame words of kind FRAME_PYTHON name. */
struct model_code {
    char *name;
    const char *file;
    uint32_t first_line;
};

struct model_thread {
    uint32_t process;
    int32_t tid;
    bool running;
    char name[THREAD_NAME_SIZE + 1];
    uint64_t start_time, end_time; /* ns; end_time 0: it has not ended */
    double exact_bytes;            /* allocated by this thread; counted, not estimated */
    bool exact_is_complete; /* false: the program was killed, and up to one sampling interval is missing */
    uint64_t samples;
};

/* A bucket of the timeline. */
struct model_moment {
    double seconds; /* since the start, at the middle of the bucket */
    double width;
    double live_max, live_last, allocated; /* bytes */
    uint64_t events;
};

enum process_state {
    PROCESS_RUNNING,
    PROCESS_FINISHED,
    PROCESS_KILLED /* ended without notice: by a signal, or by becoming another program (exec) */
};

struct model_process {
    char *source;            /* path of the recording */
    int32_t pid, parent_pid; /* as the process itself saw them */
    int32_t running_pid;     /* its number here, which differs from `pid` for containers; 0: it has ended */
    enum process_state state;
    bool attached;      /* recorded from outside: the program may have run before, and may still run */
    int64_t user;       /* number of the user who had a say in what was recorded; -1: not known */
    bool is_snapshot;   /* a copy that was made while the program ran, at the time `duration` */
    uint32_t flags;     /* enum recording_flag */
    int growth_error;   /* with RECORDING_NO_GROWTH: the errno that says why; 0 = not known */
    uint32_t filter;    /* enum free_filter */
    uint64_t rate;      /* sampling interval of malloc's heap at the start */
    char *executable;   /* "[unknown]" if the recording lacks it; likewise the next two */
    char *command_line; /* arguments joined by blanks, quoted where a shell would need it */
    char *allocator;
    uint64_t start_realtime; /* ns since the epoch */
    uint64_t
        first_thread; /* ns since the start at which its first thread began: a forked child has its parent's start */
    double duration;      /* seconds from the start to the last event, or to now if it runs */
    double peak_seconds;  /* when its heap was largest */
    struct estimate peak; /* and how large (model/peak.h) */
    uint64_t file_bytes;  /* size of the recording */
    uint64_t
        recorder_bytes; /* memory of the recorder in the program: resident pages of the recording, and its own */
    bool has_names;     /* it came out of an archive that holds names of its code addresses: */
    uint32_t names;     /* index into model.names, */
    uint32_t names_space;          /* and the part of these names that is about this process */
    size_t first_heap;             /* malloc's; index into model.heaps */
    size_t first_code, code_count; /* its part of model.codes */
    size_t first_text, text_count; /* its part of model.texts */
};

/* Names of code addresses that came with recordings out of an archive. */
struct model_names {
    void *bytes; /* in the form of symbol/symbol_store.h; not checked */
    size_t size;
    char *path; /* of the archive */
};

struct totals {
    struct figures sum; /* of all stacks; sum.peak_* is not the peak of the heap */
    /* The peak of the whole heap (docs/sampling.md, section 4): what the heap is estimated at, at the moment when it
     * seemed largest, with the error of that; and what the peak may have been at most, at whatever moment. Of several
     * processes the sum of their peaks, an upper bound. */
    struct estimate peak;
    double peak_at_most;
    double peak_objects;
    double exact_total_bytes; /* sum of the threads' own counters */
    bool exact_is_complete;   /* as in struct model_thread, of all threads */
    uint64_t drops[DROP_KINDS];
    uint64_t drops_total; /* of all kinds but DROP_CHILD, which are whole processes */
    uint64_t unknown_frees;
    uint64_t frees;              /* attach: all that were seen, exactly; 0: they were not counted */
    struct estimate older_frees; /* attach: those of them whose blocks were allocated before, or were lost */
    uint64_t recorder_bytes;
    size_t
        processes_at_once; /* the most processes that ran at the same time: sums of live bytes may be larger than
                                 what there ever was */
    uint64_t call_sites; /* places in the code that have called an allocation function, by their addresses */
    uint64_t active_call_sites; /* those of them whose blocks are live */
};

/* How good the stacks are. */
struct health {
    double complete;    /* share of the samples whose stack reaches the start of its thread and is not cut */
    uint64_t truncated; /* number of the other samples */
    uint64_t folded;    /* those of them whose stacks were shortened because the recording was nearly full */
    double mean_depth;  /* frames of a stack, on average over the samples */
    const char *confidence; /* "high" (under 5 % truncated), "medium" (under 20 %), "low" */
};

/* A sampled block that is live, with all that is known of it. */
struct model_sample {
    uint64_t address, size;
    uint64_t birth; /* ns since its process started */
    double weight;  /* bytes that it stands for */
    uint32_t stack; /* index into model.stacks */
};

struct model {
    struct model_process *processes;
    size_t process_count;
    struct model_stack *stacks; /* by process, in the order in which the program first allocated there */
    size_t stack_count;
    struct model_live *live;
    size_t live_count;
    struct model_module *modules; /* sorted by process and start */
    size_t module_count;
    const struct model_module **numbered; /* all modules, sorted by process and number */
    struct module_range *module_ranges;   /* see module_map.h */
    size_t module_range_count;
    struct model_heap *heaps; /* sorted by process and number; the first of each process is malloc's */
    size_t heap_count;
    size_t malloc_heap_count; /* how many of these are malloc's: one for each process and sampling interval */
    bool
        shows_heaps; /* views name heaps even if there is only malloc's, for a comparison with another model */
    struct model_code *codes;
    size_t code_count;
    char **texts; /* names that programs gave to scopes, types, threads and heaps */
    size_t text_count;
    struct model_thread *threads;
    size_t thread_count;
    struct model_moment *timeline; /* empty if there are several processes */
    size_t moment_count;
    struct model_names *names;
    size_t names_count;
    struct model_sample *samples; /* if asked for by `with_samples` */
    size_t sample_count;
    struct unrecorded_list unrecorded; /* programs that these have started, or have become */
    struct totals totals;
    struct health health;
    bool exact;       /* every allocation was recorded */
    bool levels_only; /* only the size of the memory over time was recorded, and nothing of single blocks */
    bool was_paused;  /* recording was off for a time, in which the threads' own counters went on */
    bool is_partial;  /* what some allocators of the program hand out was not seen */
    bool is_late;     /* a followed program ran for a while before it was attached to */
    uint64_t rate;    /* the largest sampling interval of any heap */
    uint64_t *frame_store; /* memory that stacks[].frames point into */
    char *warning;         /* what could not be read or is uncertain, one sentence a line; NULL: nothing */
    bool damaged;          /* something of a recording is missing or cannot be trusted; `warning` says what */
};

struct archive_writer;

/* What to load, and how. Zeroed fields ask for nothing special. */
struct model_load_options {
    /* Each source is the path of a recording or of an archive, a folder of recordings, or the number of a running
     * process. Several recordings are added up; one that is named twice counts once. */
    const char *const *sources;
    size_t source_count;

    /* If not NULL, live figures count only the blocks that were allocated in so many seconds after the start and
     * are still live. Blocks that were freed since are unknown: a recording keeps no history of single blocks. */
    const double *live_born_until;

    bool with_samples; /* fill `samples` in */

    /* Do not ask the kernel how much of the recording is resident in the running program; `recorder_bytes` is an
     * upper bound then. Asking holds the program up for a moment, which `top` must not do every second. */
    bool skip_resident_size;

    struct archive_writer *archive; /* also gets each recording, just as it was read; NULL: none */
};

/* On success the caller frees `*ret_model` with model_free. A recording that cannot be read is left out, and the
 * model's warning says so, as long as another one can be read. A source that does not exist is an error. */
int model_load(const struct model_load_options *options, struct model **ret_model, struct problem *problem);
void model_free(struct model *model);

/* The user who had a say in all that the model holds; -1: not known, or several. */
int64_t model_user(const struct model *model);

/* Whether the programs have told of heaps besides malloc's. If not, views need not tell heaps apart. */
static inline bool model_has_heaps(const struct model *model) {
    return model->shows_heaps || model->heap_count > model->malloc_heap_count;
}

/* The bytes and objects that a live sample stands for. Their sums over the live samples of a stack estimate its
 * live figures. */
void model_live_weight(
    const struct model *model, const struct model_live *live, double *ret_bytes, double *ret_objects);

/* The module that an address of `process` lies in, or NULL. If several were there in turn, the one that was seen
 * last. */
const struct model_module *model_find_module(const struct model *model, uint32_t process, uint64_t address);

/* The return address that a native frame word stands for. A module that frames name by number may have been mapped
 * at several places; the first one stands for all. */
struct model_place {
    const struct model_module *module; /* NULL: the address is in no module that is known */
    uint64_t address; /* 0: the frame is not native, or the recording lacks the module that it names */
};
struct model_place model_find_place(const struct model *model, uint32_t process, uint64_t word);

/* The name that a process gave and that frame words of kind FRAME_SCOPE and FRAME_THREAD hold the number of, or
 * NULL. */
const char *model_find_text(const struct model *model, uint32_t process, uint64_t number);

/* The function that a frame word of kind FRAME_PYTHON names, or NULL. */
const struct model_code *model_find_code(const struct model *model, uint32_t process, uint64_t word);

/* The path of the recording of a running process: the one that it writes itself, or that a collector writes which
 * is attached to it. The caller frees `*ret_path`. */
int model_find_recording_of(int pid, char **ret_path, struct problem *problem);

/* `malloscope run` is what a shell knows by its number ($!), and its only child is the program that is recorded. The
 * number of that program, if `pid` is such a run; else `pid`. */
int model_find_program_of_run(int pid);

/* The path of a recording that a process has mapped: its own if it writes one, else another; a collector has that
 * of the process that it is attached to. NULL: there is none that can be read. The caller frees it. */
char *model_find_recording_held_by(int pid);

/* Copies the recording of `source`, which is no folder, into the new file `path`. The copy is consistent, holds
 * only what is in use, and can be read on its own: a running program reads as one that ended now. The file appears
 * whole or not at all. A file that exists is replaced only if `replace` says so. */
int model_copy(const char *source, const char *path, bool replace, struct problem *problem);

#endif
