/* The recording: the one file that holds a program's heap profile.
 *
 * The recorder's tables are the file. The profiled program maps it shared, so nothing is ever written out: `kill
 * -9` loses nothing, and a reader that maps the same file sees the program live.
 *
 *     offset 0      ┌─────────────────────────────────┐
 *                   │ struct recording_header         │  what was recorded, counters, where the tables are
 *          4096     ├─────────────────────────────────┤
 *                   │ arena: tables, frames and text, │  handed out by raising `arena_used`,
 *                   │ each placed where the last ended│  never given back
 *     arena_used    ├─────────────────────────────────┤
 *                   │ reserved on disk, still zero    │
 * arena_reserved    └─────────────────────────────────┘  end of the file
 *
 * Tables grow by segments of doubling size: segment k of a table holds `first << k` entries. An entry never moves,
 * so its number and its offset stay good for ever. All offsets count from the start of the file; 0 means "none".
 * Integers are in the byte order of the machine (little endian on all that are supported). Times are nanoseconds
 * since `start_monotonic`.
 *
 * Sampled quantities are whole numbers in fixed point, so that a free subtracts exactly what its allocation added:
 * bytes in units of 1 / BYTE_ONE, objects in units of 1 / OBJECT_ONE. docs/sampling.md derives the weights.
 *
 * A recording is untrusted input to the tool: model/ checks every offset before it follows it. */
#ifndef MALLOSCOPE_CORE_RECORDING_H
#define MALLOSCOPE_CORE_RECORDING_H

#include "base/limits.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define RECORDING_MAGIC   "MSCOPE\r\n"
#define RECORDING_VERSION 6

#define BYTE_ONE   256u  /* one byte, in fixed point */
#define OBJECT_ONE 4096u /* one object, in fixed point */

#define ARGUMENT_END '\x1f' /* between the arguments of a command line */

#define SEGMENTS_MAX 24

/* A table of entries of one size, in segments of doubling size. Entry i lies in segment ⌊log2(i + first)⌋ -
 * log2(first). */
struct table {
    uint32_t entry_size;
    uint32_t first; /* entries in segment 0, a power of two */
    _Atomic uint64_t count;
    _Atomic uint64_t segment[SEGMENTS_MAX]; /* file offsets, 0 = not yet made */
};

/* Why something was not recorded. Nothing is lost without being counted in header.drops. */
enum drop {
    DROP_LIVE_TABLE,  /* no room for a live sample */
    DROP_STACK_TABLE, /* no room for a new stack: its allocations count for stack 0, "[dropped]" */
    DROP_THREAD,      /* no room for a thread's record: its allocations are not sampled */
    DROP_SCRATCH,     /* a sample found all capture buffers in use */
    DROP_MODULE,      /* no room for a module */
    DROP_ADDRESS,     /* an address above 48 bits */
    DROP_RING,        /* attach: the kernel sent more than the collector could take in time */
    DROP_TRACKED,     /* attach: the kernel's table of tracked blocks was full */
    DROP_CALL,        /* attach: a call whose return was not seen */
    DROP_NAME,        /* no room for a name or a code object: shown without */
    DROP_INHERITED,   /* fork: a block that the parent may have had, and that this recording does not have */
    DROP_CHILD, /* a child process that has no recording of its own; nothing is missing in this recording */
    DROP_KINDS
};

/* How free() finds out whether a block was sampled. */
enum free_filter {
    FILTER_MARK = 1,   /* sampled blocks carry a mark in front: one compare */
    FILTER_PROBES = 3, /* attach: a probe in the kernel looks into its table of tracked blocks */
    FILTER_LOOKUP = 2, /* blocks are left as they are and found by their addresses */
};

enum recording_flag {
    RECORDING_EXACT = 1 << 0,     /* every allocation is recorded (rate 1) */
    RECORDING_FORKED = 1 << 1,    /* of a forked child: began with what it inherited from its parent */
    RECORDING_FINISHED = 1 << 2,  /* the program ended through exit, and its threads' figures are complete */
    RECORDING_NO_GROWTH = 1 << 3, /* the file can no longer be extended (disk full, deleted, sandbox) */
    RECORDING_SNAPSHOT = 1 << 4,  /* a copy that was made while the program ran */
    RECORDING_LEVELS = 1 << 5,    /* only the size of the memory over time is known, not single blocks */
    RECORDING_PAUSED = 1 << 7,    /* the program has switched recording off for a time */
    RECORDING_PARTIAL = 1 << 6, /* attach: some allocators of the program, or parts of one, have no probes */
    RECORDING_LATE = 1 << 8,    /* attach --follow: the program ran for a while before it had probes */
};

#define HEADER_SPAN 4096u /* bytes kept for the header: the arena begins behind them */

/* Sums over stacks (core/running_sums.h). Bytes are in units of 1 / BYTE_ONE, objects of 1 / OBJECT_ONE; variances are
 * those of bytes, as the bits of doubles. */
struct running_sums {
    _Atomic uint64_t total_bytes, total_objects;
    _Atomic uint64_t live_objects, live_samples;
    _Atomic uint64_t total_variance, live_variance;
};

/* The heap as one half of the sampling points shows it (core/peak_halves.h), in units of 1 / BYTE_ONE. */
struct peak_half {
    _Atomic uint64_t seen; /* live bytes, as the points of this half alone estimate them */
    _Atomic uint64_t
        size; /* live bytes: those that this half has seen, and the other half's estimate of the rest */
    _Atomic uint64_t most_seen; /* the largest value of `seen` */
    _Atomic uint64_t size_then; /* `size` when `seen` was largest */
};

/* The header of one process's recording. Fields marked (c) may be written by the tool from outside. */
struct recording_header {
    char magic[8];
    uint32_t version;
    uint32_t header_size;
    uint32_t machine; /* ELF e_machine */
    uint32_t filter;  /* enum free_filter */
    _Atomic uint32_t flags;
    int32_t pid;
    int32_t parent_pid;
    int32_t writer;              /* the process that writes this, if it is not `pid`; else 0 */
    uint32_t depth_max;          /* the most frames that are kept of a stack */
    uint32_t target_user;        /* attach: number of the user that `pid` runs as, plus 1; 0 = not known */
    _Atomic uint64_t active;     /* (c) 0 = allocations are not sampled; frees are still counted */
    uint64_t rate;               /* malloc's sampling interval at the start, in bytes; 1 = exact */
    uint64_t start_realtime;     /* ns since the epoch */
    uint64_t start_monotonic;    /* ns, CLOCK_MONOTONIC */
    _Atomic uint64_t last_event; /* ns; thread_record.last_event may be later */
    uint64_t seed;               /* given by MALLOSCOPE_SEED; 0 = the kernel's random numbers */

    uint64_t size_max; /* the arena never grows beyond this */
    _Atomic uint64_t arena_used;
    _Atomic uint64_t arena_reserved;

    struct table threads;       /* struct thread_record */
    struct table stacks;        /* struct stack_record; entry 0 is "[dropped]" */
    struct table modules;       /* struct module_record */
    struct table names;         /* struct name_record; entry 0 stands for no name */
    struct table heaps;         /* struct heap_record; entry 0 is malloc's */
    struct table code_objects;  /* struct code_record; entry 0 is no code */
    struct table live;          /* struct live_entry; `count` is the number of slots made so far */
    _Atomic uint64_t live_pool; /* chains of free slots that no thread holds (live_table.c) */

    /* The index of the stack table (stack_table.c): an array of stack numbers + 1, 0 = empty place. The upper 56
     * bits are its offset, the lower 8 bits log2 of the number of its places. A larger index replaces the former
     * one. */
    _Atomic uint64_t stack_index;

    uint64_t timeline; /* offset of struct timeline */

    /* Text, as offsets of zero-terminated strings. */
    uint64_t executable;
    uint64_t command_line; /* arguments separated by ARGUMENT_END */
    uint64_t allocator;    /* path of the module that serves malloc */

    /* Figures of the whole heap, weighted, in units of 1 / BYTE_ONE (heap_size.h). live_bytes − Σ slack(t) is what
     * is live, for all threads t. It has a cache line of its own. */
    _Alignas(64) _Atomic uint64_t live_bytes;
    _Alignas(64) _Atomic uint64_t peak_bytes; /* the most that was live */
    _Atomic uint64_t peak_time;
    _Atomic uint64_t peak_epoch; /* how often a new peak was set */
    _Atomic uint64_t has_slack;  /* 1 = a thread has slack, or had some */
    _Atomic uint64_t is_tense;   /* 1 = live_bytes may be above peak_bytes */

    _Alignas(64) _Atomic uint64_t unknown_frees; /* frees of blocks that are in no table (exact mode only) */
    _Atomic uint64_t drops[DROP_KINDS];
    _Atomic uint64_t orphan_bytes;  /* exact bytes of threads that have no record, or no longer have one */
    _Atomic uint64_t private_bytes; /* memory that the recorder takes besides this file */

    /* Recordings that were made without the fields from here on have zeros there, since HEADER_SPAN bytes are kept for
     * the header. */
    /* Offset of struct unrecorded_programs; 0 = there is none. */
    uint64_t unrecorded;
    _Atomic uint64_t frees; /* attach: all frees, of sampled blocks or not; 0 = they were not counted */

    _Alignas(64) struct peak_half halves[2]; /* zero in exact recordings */
    struct running_sums sums;                /* of events without a thread, and of ended threads */
    uint64_t
        inherited_until; /* ns; a forked child has inherited the blocks that were born before this; else 0 */
    _Atomic uint32_t growth_error; /* with RECORDING_NO_GROWTH: the errno that says why; 0 = not known */
};

/* The fields up to this one are in every recording of this version. */
#define HEADER_SIZE_LEAST offsetof(struct recording_header, unrecorded)

/* Why a program that the recorded one has started, or has become by exec, is not recorded. */
enum unrecorded_reason {
    UNRECORDED_NONE,        /* it is recorded, as far as can be seen */
    UNRECORDED_STATIC,      /* statically linked: there is no dynamic loader that could load the recorder */
    UNRECORDED_OTHER_LIBC,  /* it asks for the loader of another C library, such as musl's */
    UNRECORDED_MACHINE,     /* a 32-bit program, or one for another machine */
    UNRECORDED_SANITIZER,   /* built with a sanitizer, which replaces malloc itself */
    UNRECORDED_OWN_MALLOC,  /* it carries a malloc inside: its calls pass no preloaded library */
    UNRECORDED_RIGHTS,      /* it gains rights (set-uid, capabilities): the loader ignores LD_PRELOAD */
    UNRECORDED_UNREACHABLE, /* the recorder's file cannot be read from where it is started (chroot) */
    UNRECORDED_ENVIRONMENT, /* it was started with an environment that does not name the recorder */
    UNRECORDED_NO_FOLLOW,   /* the program itself became it by exec, and the user wants no other program */
    UNRECORDED_NAMESPACE,   /* not a program, but a library in a linker namespace of its own (dlmopen) */
    UNRECORDED_REASONS
};

#define UNRECORDED_MOST     32
#define UNRECORDED_PATH_MAX 104

/* A place of the table: a program and a reason. */
struct unrecorded_program {
    _Atomic uint64_t key;           /* hash of the path and the reason; 0 = free */
    _Atomic uint64_t count;         /* how often it was started */
    _Atomic uint64_t reason;        /* 0 until the path is written */
    char path[UNRECORDED_PATH_MAX]; /* of a longer path the last part; ends with 0 */
};

struct unrecorded_programs {
    struct unrecorded_program program[UNRECORDED_MOST];
    _Atomic uint64_t others; /* starts of programs for which no place was free */
};

enum thread_state {
    THREAD_NEW = 0, /* not yet filled by the thread it was made for */
    THREAD_RUNNING = 1,
    THREAD_ENDED = 2,
    THREAD_FREE = 3, /* ended without a sample: another thread may take the record */
};

#define SLACK_MASK ((UINT64_C(1) << 48) - 1) /* of thread_record.slack */

/* A thread and its sampler. The bytes that it has allocated are (docs/sampling.md, (8)):
 *
 *     bytes + interval − countdown      countdown: the word at countdown_address in the program's memory */
struct thread_record {
    _Alignas(64) _Atomic uint32_t state;
    _Atomic int32_t tid;
    char name[THREAD_NAME_SIZE];
    uint64_t start_time;
    _Atomic uint64_t end_time;
    _Atomic uint64_t bytes;
    _Atomic uint64_t interval;
    _Atomic uint64_t samples;
    uint64_t countdown_address;
    uint64_t random[4];             /* state of the random number generator (sampler.h) */
    uint64_t stack_low, stack_high; /* known bounds of the thread's stack (unwind_stack_bounds) */
    uint64_t number;                /* of this record in the table */

    /* The thread's counts for the timeline. *_noted is what has been added to a bucket already (timeline.h). */
    _Atomic uint64_t last_event;
    _Atomic uint64_t events, events_noted;
    _Atomic uint64_t allocated, allocated_noted; /* weighted, in units of 1 / BYTE_ONE */
    uint64_t moment;                             /* the bucket of the thread's last event */

    _Atomic uint64_t spare; /* head of the thread's list of free slots (live_table.c) */
    /* The thread's slack (heap_size.h) in the bits of SLACK_MASK, in units of 1 / BYTE_ONE; above them a count of its
     * changes. */
    _Atomic uint64_t slack;
    int64_t spare_count; /* length of the list of free slots, about: a signal handler may spoil it a little */
    struct running_sums sums; /* of its own events */
};

/* Lifetimes are counted on a log scale: bucket 0 holds those under 1,024 ns, bucket b those under 4^b × 1,024 ns. A
 * block is temporary if it lives for less than about a millisecond (2^20 ns): buckets 0 to 5. */
#define LIFETIME_BUCKETS  16
#define LIFETIME_SHIFT    10
#define TEMPORARY_BUCKETS 6

static inline unsigned lifetime_bucket(uint64_t nanoseconds) {
    uint64_t units = nanoseconds >> LIFETIME_SHIFT;
    if (units == 0) return 0;
    unsigned bucket = (63 - (unsigned)__builtin_clzll(units)) / 2 + 1;
    return bucket < LIFETIME_BUCKETS ? bucket : LIFETIME_BUCKETS - 1;
}

enum stack_flag {
    STACK_COMPLETE = 1 << 0, /* the stack walk reached the start of the thread */
    STACK_CUT = 1 << 1,      /* deeper than depth_max: frames are missing in the middle */
    STACK_FOLDED = 1 << 2,   /* frames are missing in the middle, because the recording was nearly full */
};

/* A distinct call stack with its heap and type, and all figures of the allocations made from it.
 *
 *     live bytes   = alloc_bytes − temporary_bytes − lasting_bytes
 *     live objects = alloc_objects − freed_objects
 *
 * The fields are arranged by cache lines: first what allocations write, then what frees write, then what hardly
 * changes. If one thread allocates what another frees, neither waits for the line that the other writes, unless it
 * must read it. */
struct stack_record {
    _Alignas(64) _Atomic uint64_t alloc_objects; /* all objects ever allocated, in units of 1 / OBJECT_ONE */
    _Atomic uint64_t alloc_bytes;                /* likewise, in units of 1 / BYTE_ONE */
    _Atomic uint64_t peak_bytes;                 /* the most live bytes that this stack had: its own peak */
    _Atomic uint64_t freed_seen;     /* bytes that had been freed at some earlier time: never more than now */
    _Atomic uint64_t alloc_epoch;    /* header.peak_epoch at some earlier time */
    _Atomic uint64_t samples;        /* allocations sampled; 0 in exact mode, where alloc_objects tells it */
    _Atomic uint64_t sampled_bytes;  /* plain sizes of the samples; 0 in exact mode */
    _Atomic uint64_t bytes_variance; /* of alloc_bytes, in bytes²: the bits of a double */

    _Atomic uint64_t freed_objects;
    _Atomic uint64_t temporary_bytes;            /* bytes of temporary blocks that were freed */
    _Atomic uint64_t lasting_bytes;              /* bytes of other blocks that were freed */
    _Atomic uint64_t freed_epoch;                /* header.peak_epoch at some earlier time */
    _Atomic uint64_t lifetime[LIFETIME_BUCKETS]; /* freed objects by lifetime, in units of 1 / OBJECT_ONE */

    /* Live figures at the heap's peak: the saved ones if peak_epoch equals header.peak_epoch. Otherwise the stack
     * has not changed since that peak, and its live figures are those of the peak. */
    _Atomic uint64_t peak_epoch;
    _Atomic uint64_t saved_bytes;
    _Atomic uint64_t saved_objects;
    _Atomic uint64_t peak_objects;     /* live objects at the stack's own peak */
    _Atomic uint64_t objects_variance; /* of alloc_objects: the bits of a double */
    uint64_t inherited_objects;        /* the part of alloc_* that a forked child inherited as live */
    uint64_t inherited_bytes;

    uint64_t hash;
    uint64_t frames;      /* offset of `frame_count` frame words, leaf first */
    uint32_t frame_count; /* written last: 0 = the record is not filled yet */
    uint32_t flags;       /* enum stack_flag */
    uint32_t heap;        /* number of its heap */
    uint32_t type;        /* number of the type's name, 0 = not known */
};

static inline uint64_t stack_freed_bytes(const struct stack_record *stack) {
    /* Acquire: a reader that loads alloc_bytes after this finds freed ≤ allocated (events.c). */
    return atomic_load_explicit(&stack->temporary_bytes, memory_order_acquire) +
           atomic_load_explicit(&stack->lasting_bytes, memory_order_acquire);
}

/* A frame is one word. Its top 8 bits tell its kind, the bits below hold its value:
 *
 *     FRAME_NATIVE                8 bits: 0                              48 bits: an address
 *     FRAME_MODULE                24 bits: the number of a module        32 bits: an offset in its file
 *     FRAME_SCOPE, FRAME_THREAD   the number of a name
 *     FRAME_PYTHON                24 bits: the number of a code object   32 bits: a line
 *
 * After a library is closed, another one may be mapped at its addresses. So an address in a library that can be
 * closed would not tell which of the two it was: such frames are of kind FRAME_MODULE. */
#define FRAME_KIND_SHIFT   56
#define FRAME_VALUE_MASK   ((UINT64_C(1) << 48) - 1)
#define FRAME_MODULE_SHIFT 32
#define FRAME_MODULE_MASK  ((UINT64_C(1) << 24) - 1)
#define FRAME_OFFSET_MASK  ((UINT64_C(1) << 32) - 1)
#define FRAME_CODE_SHIFT   32
#define FRAME_CODE_MASK    ((UINT64_C(1) << 24) - 1)
#define FRAME_LINE_MASK    ((UINT64_C(1) << 32) - 1)

enum frame_kind {
    FRAME_NATIVE = 0, /* a return address; the leaf is the call of malloc. Look up the byte before it */
    FRAME_CUT = 1,    /* frames are missing here */
    FRAME_MODULE = 2, /* a return address, as the offset in a module that is named by its number */
    FRAME_SCOPE = 3,  /* a scope that the program has named: it stands behind the frames that ran inside it */
    FRAME_THREAD = 4, /* the thread's name: the last frame */
    FRAME_PYTHON = 5, /* a Python function, in the place of the C function that interprets it */
};

/* A module: a file that is mapped executable into the program. A module that frames name by its number has one record,
 * however often and wherever it was opened; `start` and `end` are where it was mapped first. */
struct module_record {
    uint64_t start, end;  /* addresses of the mapping */
    uint64_t file_offset; /* offset in the file of `start` */
    uint64_t path;        /* offset of the text */
    uint64_t first_seen;  /* ns */
    uint64_t inode;
    uint32_t device_major, device_minor;
    uint8_t build_id_size;
    uint8_t build_id[31];
    uint64_t
        fingerprint;    /* hash of the file's first page, 0 = not known: tells files without build-id apart */
    uint64_t by_number; /* 1 = frames in it are of kind FRAME_MODULE, 0 = they are addresses */
    _Atomic uint64_t complete; /* 1 = all fields are written */
};

/* A name: of a scope, a type, a thread or a heap, or the file of a code object. */
struct name_record {
    _Atomic uint64_t text; /* offset; 0 until the text is written */
};

/* A code object: a function of an interpreted language. */
struct code_record {
    uint64_t name; /* offset of the text */
    uint32_t file; /* number of its name */
    uint32_t first_line;
    _Atomic uint64_t complete; /* 1 = all fields are written */
};

enum heap_kind {
    HEAP_REPORTED,   /* the program reports each block */
    HEAP_ENUMERATED, /* the program lists its live blocks when it is asked */
    HEAP_OF_MALLOC,
};

/* A heap: malloc's, or one that the program manages itself and reports. If the program changes malloc's sampling
 * interval, the new interval is one more heap of malloc's kind (record/api/rate.c). */
struct heap_record {
    uint32_t name;             /* number of its name; 0 for malloc's */
    uint32_t kind;             /* enum heap_kind */
    uint64_t rate;             /* the sampling interval, in bytes */
    _Atomic uint64_t complete; /* 1 = all fields are written */
};

/* An entry of the live table: a live sample, or a free slot.
 *
 *     key   lower 48 bits: the block's address; upper 16 bits: the lower 16 bits of `birth`; 0 = a free slot
 *
 * The next sample in the slot has another birth, and so another key. A reader that finds the key unchanged after it
 * has read the other words has read one whole entry. In a free slot, `size` and `birth` hold links to other free
 * slots (live_table.c). */
struct live_entry {
    _Atomic uint64_t key;
    uint64_t size;  /* as the program asked for it */
    uint64_t birth; /* ns */
    uint32_t stack;
    uint32_t count; /* objects in the block: 1, or what the program reported for a block of its own heap */
};

#define LIVE_KEY_MASK ((UINT64_C(1) << 48) - 1)

#define TIMELINE_BUCKETS 512

/* Bytes are in units of 1 / BYTE_ONE. */
struct timeline_bucket {
    _Atomic uint64_t live_max;  /* the largest size of the heap in this bucket */
    _Atomic uint64_t live_last; /* the size at its end */
    _Atomic uint64_t allocated; /* bytes allocated in this bucket */
    _Atomic uint64_t events;
};

/* The heap over time. Bucket i covers the time [i << shift, (i + 1) << shift) ns. When the last bucket is passed,
 * each two neighbours are merged, and buckets are twice as wide. `sequence` is odd during a merge. What a thread
 * has counted since its first event in a bucket is still in the thread's record (timeline.h). */
struct timeline {
    _Atomic uint64_t sequence;
    _Atomic uint64_t shift;
    struct timeline_bucket bucket[TIMELINE_BUCKETS];
};

static_assert(sizeof(struct recording_header) <= HEADER_SPAN, "the header fits its page");
static_assert(sizeof(struct thread_record) == 256, "recordings of this version have records of this size");
static_assert(sizeof(struct live_entry) == 32, "two entries fill a cache line");
static_assert(sizeof(struct stack_record) % 64 == 0, "stacks do not share cache lines");
static_assert(sizeof(struct thread_record) % 64 == 0, "threads do not share cache lines");

#endif
