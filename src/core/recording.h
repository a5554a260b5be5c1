/* The recording: the one file in which a program's heap profile lives.
 *
 * The recorder's tables are the file. It is mapped shared by the program that is profiled, so nothing is ever
 * written out: `kill -9` loses nothing, and a reader that maps the same file sees the program live.
 *
 *     offset 0      ┌─────────────────────────────────┐
 *                   │ struct recording_header         │  what was recorded, counters, where the tables are
 *          4096     ├─────────────────────────────────┤
 *                   │ arena: tables, frames and text, │  handed out by bumping `arena_used`,
 *                   │ each placed where the last ended│  never given back
 *     arena_used    ├─────────────────────────────────┤
 *                   │ reserved on disk, still zero    │
 * arena_reserved    └─────────────────────────────────┘  end of the file
 *
 * Tables grow by segments that double in size: segment k of a table holds `first << k` entries. An entry
 * never moves, so an index or an offset stays good for ever. All offsets count from the start of the file;
 * zero means "none". Integers are in the byte order of the machine (little endian everywhere we run), times
 * are nanoseconds since `start_monotonic`.
 *
 * Sampled quantities are kept as whole numbers in fixed point, so that a free subtracts exactly what its
 * allocation added: bytes in units of 1/BYTE_ONE, objects in units of 1/OBJECT_ONE. docs/sampling.md derives
 * the weights.
 *
 * A recording is untrusted input to the tool: model/ checks every offset before it follows it.
 */
#ifndef MALLOSCOPE_CORE_RECORDING_H
#define MALLOSCOPE_CORE_RECORDING_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#define RECORDING_MAGIC   "MSCOPE\r\n"
#define RECORDING_VERSION 6

#define BYTE_ONE   256u  /* fixed-point one of a byte figure */
#define OBJECT_ONE 4096u /* fixed-point one of an object figure */

#define ARGUMENT_END '\x1f' /* between the arguments of a command line */

#define SEGMENTS_MAX 24

/* A table of equal entries in doubling segments. Entry i lies in segment k = log2(i + first) - log2(first).
 */
struct table {
    uint32_t entry_size;
    uint32_t first; /* entries in segment 0, a power of two */
    _Atomic uint64_t count;
    _Atomic uint64_t segment[SEGMENTS_MAX]; /* file offsets, 0 = not yet made */
};

/* Why something was not recorded. Nothing is lost without being counted here. */
enum drop {
    DROP_LIVE_TABLE,  /* no room for a live sample */
    DROP_STACK_TABLE, /* no room for a new stack: counted under stack 0, "[dropped]" */
    DROP_THREAD,      /* no room for a thread's record: its allocations are not sampled */
    DROP_SCRATCH,     /* all capture buffers busy */
    DROP_MODULE,      /* a mapped file could not be noted */
    DROP_ADDRESS,     /* an address above 48 bits */
    DROP_RING,        /* attached: more came from the kernel than the collector could take in time */
    DROP_TRACKED,     /* attached: the kernel's table of tracked blocks was full */
    DROP_CALL,        /* attached: a call whose return was not seen */
    DROP_NAME,        /* no room for the name of a scope, a type or a heap: shown without */
    DROP_INHERITED,   /* forked: a block that the parent may have had, and this recording knows nothing of */
    DROP_CHILD,       /* a child process without a recording of its own: nothing is missing in this one */
    DROP_KINDS
};

/* What free() does to find out whether a block was sampled. */
enum free_filter {
    FILTER_MARK = 1,   /* sampled blocks carry a mark in front: one compare */
    FILTER_PROBES = 3, /* a probe in the kernel looks into its table of tracked blocks: attached */
    FILTER_LOOKUP = 2, /* blocks are left as they are and found by their addresses */
};

enum recording_flag {
    RECORDING_EXACT = 1 << 0,     /* every allocation is recorded (rate 1) */
    RECORDING_FORKED = 1 << 1,    /* began as a copy of its parent's tables at fork */
    RECORDING_FINISHED = 1 << 2,  /* the program ended through exit and flushed its thread figures */
    RECORDING_NO_GROWTH = 1 << 3, /* the file could not be extended any more (disk full, deleted, sandbox) */
    RECORDING_SNAPSHOT = 1 << 4,  /* a copy that was made while the program ran */
    RECORDING_LEVELS = 1 << 5,  /* only the size of the memory over time is known: nothing of single blocks */
    RECORDING_PAUSED = 1 << 7,  /* the program has switched recording off for a time */
    RECORDING_PARTIAL = 1 << 6, /* attached: some allocators of the program, or part of one, have no probes */
};

#define HEADER_SPAN 4096u /* bytes kept for the header: the arena begins behind them */

/* One process's recording. Fields marked (c) may be written by the owner's tools from outside. */
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
    uint32_t depth_max;          /* frames kept of a stack */
    _Atomic uint64_t active;     /* (c) 0 = allocations are not sampled; frees still are */
    uint64_t rate;               /* of malloc at the start: mean bytes between samples; 1 = exact */
    uint64_t start_realtime;     /* ns since the epoch */
    uint64_t start_monotonic;    /* ns, CLOCK_MONOTONIC */
    _Atomic uint64_t last_event; /* ns; or later, by the threads' records */
    uint64_t seed;               /* given by MALLOSCOPE_SEED, 0 = from the kernel */

    uint64_t size_max; /* the arena never grows beyond this */
    _Atomic uint64_t arena_used;
    _Atomic uint64_t arena_reserved;

    struct table threads;       /* struct thread_record */
    struct table stacks;        /* struct stack_record; entry 0 is "[dropped]" */
    struct table modules;       /* struct module_record */
    struct table names;         /* struct name_record; entry 0 is no name */
    struct table heaps;         /* struct heap_record; entry 0 is malloc's */
    struct table code_objects;  /* struct code_record; entry 0 is no code */
    struct table live;          /* struct live_entry; `count` is the number of slots made so far */
    _Atomic uint64_t live_pool; /* chains of free slots that no thread holds (live_table.c) */

    /* Index of the stack table: open addressing over stack numbers + 1. A grown index replaces the former
     * one; the word holds its offset in the upper 56 bits and log2 of its size in the lower 8. */
    _Atomic uint64_t stack_index;

    uint64_t timeline; /* offset of struct timeline */

    /* Text, as offsets of zero-terminated strings. */
    uint64_t executable;
    uint64_t command_line; /* arguments separated by ARGUMENT_END */
    uint64_t allocator;    /* path of the module that serves malloc */

    /* Figures of the whole heap, weighted. What is live plus the slack of the threads (heap_size.h), in a
     * cache line of its own; and the peak of the estimated live bytes. */
    _Alignas(64) _Atomic uint64_t live_bytes;
    _Alignas(64) _Atomic uint64_t peak_bytes;
    _Atomic uint64_t peak_time;
    _Atomic uint64_t peak_epoch; /* number of times a new peak was set */
    _Atomic uint64_t has_slack;  /* a thread has, or had, some */
    _Atomic uint64_t is_tense;   /* live_bytes may be above the peak (heap_size.c) */

    _Alignas(64) _Atomic uint64_t unknown_frees; /* frees of blocks that are in no table (exact mode only) */
    _Atomic uint64_t drops[DROP_KINDS];
    _Atomic uint64_t orphan_bytes;  /* exact bytes of threads that have no record */
    _Atomic uint64_t private_bytes; /* memory that the recorder takes besides this file */
};

/* NEW: not yet filled by the thread it was made for. FREE: may be taken by another. */
enum thread_state { THREAD_NEW = 0, THREAD_RUNNING = 1, THREAD_ENDED = 2, THREAD_FREE = 3 };

#define SLACK_MASK ((UINT64_C(1) << 48) - 1) /* of thread_record.slack */

/* A thread and its sampler. `bytes` counts what it allocated up to its last draw; what it allocated since is
 * `interval` minus the countdown in its thread-local storage, at `countdown_address` in the program. */
struct thread_record {
    _Alignas(64) _Atomic uint32_t state;
    _Atomic int32_t tid;
    char name[16];
    uint64_t start_time;
    _Atomic uint64_t end_time;
    _Atomic uint64_t bytes;
    _Atomic uint64_t interval;
    _Atomic uint64_t samples;
    uint64_t countdown_address;
    uint64_t random[4];
    uint64_t stack_low, stack_high; /* bounds of the stack that was last walked */
    uint64_t number;                /* of this record in the table */

    /* What the thread adds to the timeline, when it has its next event in another bucket. */
    _Atomic uint64_t last_event;
    _Atomic uint64_t events, events_noted;
    _Atomic uint64_t allocated, allocated_noted; /* BYTE_ONE, weighted */
    uint64_t moment;                             /* the bucket of its last event */

    _Atomic uint64_t spare; /* its free slots of the live table (live_table.c) */
    /* What it may allocate before the heap's size is changed (heap_size.h), BYTE_ONE, in the bits of
     * SLACK_MASK; above them a count of changes. */
    _Atomic uint64_t slack;
    int64_t spare_count; /* about how many they are; signal handlers may spoil it a little */
};

/* Lifetimes are counted on a log scale: bucket 0 holds those under 1,024 ns, bucket b those under 4^b times
 * as much. A block is temporary if it lives for less than about a millisecond: buckets 0 to 5. */
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
    STACK_COMPLETE = 1 << 0, /* the walk reached the start of the thread */
    STACK_CUT = 1 << 1,      /* deeper than depth_max */
};

/* A distinct call stack, heap and type, and everything that is known about the allocations made from it.
 *
 * By cache lines: first what allocations write, then what frees write, then what hardly changes. One thread
 * may allocate what another frees; then neither waits for the line of the other, if it need not look there.
 */
struct stack_record {
    _Alignas(64) _Atomic uint64_t alloc_objects; /* OBJECT_ONE */
    _Atomic uint64_t alloc_bytes;                /* BYTE_ONE */
    _Atomic uint64_t peak_bytes;                 /* this stack's own peak */
    _Atomic uint64_t freed_seen;                 /* bytes that were freed by some time: never more than now */
    _Atomic uint64_t alloc_epoch;                /* peak_epoch at some time */
    _Atomic uint64_t samples;        /* allocations sampled; in exact mode left at 0: alloc_objects says it */
    _Atomic uint64_t sampled_bytes;  /* plain sizes of the samples; in exact mode left at 0 */
    _Atomic uint64_t bytes_variance; /* bits of a double, of alloc_bytes in bytes² */

    _Atomic uint64_t freed_objects;
    _Atomic uint64_t temporary_bytes;            /* freed, of the temporary ones */
    _Atomic uint64_t lasting_bytes;              /* freed, of the others */
    _Atomic uint64_t freed_epoch;                /* peak_epoch at some time */
    _Atomic uint64_t lifetime[LIFETIME_BUCKETS]; /* freed objects, OBJECT_ONE */

    /* Live figures at the global peak: if peak_epoch equals the header's, the saved ones; otherwise nothing
     * has changed here since that peak and the live figures are those of the peak. */
    _Atomic uint64_t peak_epoch;
    _Atomic uint64_t saved_bytes;
    _Atomic uint64_t saved_objects;
    _Atomic uint64_t peak_objects;     /* at its own peak */
    _Atomic uint64_t objects_variance; /* bits of a double, of alloc_objects */
    uint64_t inherited_objects;        /* the part of alloc_* that a forked child took over as live */
    uint64_t inherited_bytes;

    uint64_t hash;
    uint64_t frames; /* offset of `frame_count` frame words, leaf first */
    uint32_t frame_count;
    uint32_t flags;
    uint32_t heap; /* number of its heap */
    uint32_t type; /* number of the type's name, 0 = not known */
};

static inline uint64_t stack_freed_bytes(const struct stack_record *stack) {
    /* Acquire: who reads what was allocated afterwards finds no less than was freed. */
    return atomic_load_explicit(&stack->temporary_bytes, memory_order_acquire) +
           atomic_load_explicit(&stack->lasting_bytes, memory_order_acquire);
}

/* A frame is one word: what it is in the top 8 bits, its value in those below.
 *
 *     FRAME_NATIVE   8 bits of nothing, 48 bits of address
 *     FRAME_MODULE   24 bits: the number of a module, 32 bits: offset in its file
 *     FRAME_SCOPE, FRAME_THREAD   the number of a name
 *     FRAME_PYTHON   24 bits: the number of a code, 32 bits: the line that it is at
 *
 * A place in memory holds one library after another when they are closed: an address in one that can be
 * closed would not tell which it was. */
#define FRAME_KIND_SHIFT   56
#define FRAME_VALUE_MASK   ((UINT64_C(1) << 48) - 1)
#define FRAME_MODULE_SHIFT 32
#define FRAME_MODULE_MASK  ((UINT64_C(1) << 24) - 1)
#define FRAME_OFFSET_MASK  ((UINT64_C(1) << 32) - 1)
#define FRAME_CODE_SHIFT   32
#define FRAME_CODE_MASK    ((UINT64_C(1) << 24) - 1)
#define FRAME_LINE_MASK    ((UINT64_C(1) << 32) - 1)

enum frame_kind {
    FRAME_NATIVE =
        0,         /* a return address, also for the leaf (the call of malloc): look it up one byte earlier */
    FRAME_CUT = 1, /* frames are missing here */
    FRAME_MODULE = 2, /* a return address in a module that is named by its number */
    FRAME_SCOPE = 3,  /* a part of its work that the program has named; they stand around the native frames */
    FRAME_THREAD = 4, /* the thread, around everything */
    FRAME_PYTHON = 5, /* a function of the Python interpreter, in place of the one that interprets it */
};

/* A file mapped executable into the program. One that frames name by its number is recorded once, however
 * often and wherever it was opened: `start` and `end` are where it was first. */
struct module_record {
    uint64_t start, end;  /* address range */
    uint64_t file_offset; /* of `start` */
    uint64_t path;        /* offset of the text */
    uint64_t first_seen;  /* ns */
    uint64_t inode;
    uint32_t device_major, device_minor;
    uint8_t build_id_size;
    uint8_t build_id[31];
    uint64_t fingerprint; /* of the file's first page, 0 = not known: tells files without build-id apart */
    uint64_t by_number;   /* 1 = no plain address lies in it: frames name it by its number */
    _Atomic uint64_t complete; /* 1 once all fields are written */
};

/* A name that the program gave: of a scope, a type, a thread or a heap. */
struct name_record {
    _Atomic uint64_t text; /* offset; 0 until it is written */
};

/* A function of an interpreted language. */
struct code_record {
    uint64_t name; /* offset of the text */
    uint32_t file; /* number of a name */
    uint32_t first_line;
    _Atomic uint64_t complete; /* 1 once all fields are written */
};

enum heap_kind {
    HEAP_REPORTED,   /* the program tells of each block */
    HEAP_ENUMERATED, /* the program lists its live blocks when it is asked */
    HEAP_OF_MALLOC,
};

/* A heap: malloc's, or one that the program manages itself and tells us about. Where malloc is sampled at
 * another rate later, that is one more heap of malloc's kind (record/api/rate.c). */
struct heap_record {
    uint32_t name; /* none if it is malloc's */
    uint32_t kind; /* enum heap_kind */
    uint64_t rate;
    _Atomic uint64_t complete; /* 1 once all fields are written */
};

/* A live sample, or a free slot for one. The key word holds the block's address in its lower 48 bits, and in
 * its upper 16 the lower ones of its birth, which are others at the next use of the slot: a reader that finds
 * the word unchanged has read one whole entry. Key 0 is a free slot, whose `size` links it to others
 * (live_table.c). */
struct live_entry {
    _Atomic uint64_t key;
    uint64_t size;  /* as asked for */
    uint64_t birth; /* ns */
    uint32_t stack;
    uint32_t count; /* objects in the block: 1, or what the program said of a block in a heap of its own */
};

#define LIVE_KEY_MASK ((UINT64_C(1) << 48) - 1)

#define TIMELINE_BUCKETS 512

struct timeline_bucket {
    _Atomic uint64_t live_max; /* BYTE_ONE */
    _Atomic uint64_t live_last;
    _Atomic uint64_t allocated; /* BYTE_ONE, within this bucket */
    _Atomic uint64_t events;
};

/* The heap over time. Bucket i covers [i << shift, (i + 1) << shift) ns. When the last bucket is passed,
 * neighbours merge and the width doubles. `sequence` is odd while that is under way. What a thread did since
 * it came to its bucket is still in its record. */
struct timeline {
    _Atomic uint64_t sequence;
    _Atomic uint64_t shift;
    struct timeline_bucket bucket[TIMELINE_BUCKETS];
};

static_assert(sizeof(struct recording_header) <= HEADER_SPAN, "the header fits its page");
static_assert(sizeof(struct live_entry) == 32, "two entries fill a cache line");
static_assert(sizeof(struct stack_record) % 64 == 0, "stacks do not share cache lines");
static_assert(sizeof(struct thread_record) % 64 == 0, "threads do not share cache lines");

#endif
