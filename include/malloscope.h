/* malloscope: which line of your program holds its memory.
 *
 * `malloscope run ./program` records malloc without any help. This header is for programs that want to say
 * more: that manage memory themselves (arenas, pools, slabs), that want figures by request, by phase or by
 * type, or that decide themselves when to record.
 *
 *     #include <malloscope.h>
 *
 *     mscope_heap heap = mscope_heap_register("textures", NULL);
 *
 *     void *texture_alloc(size_t size) {
 *         void *block = my_allocator(size);
 *         mscope_heap_alloc(heap, block, size);
 *         return block;
 *     }
 *     void texture_free(void *block) {
 *         mscope_heap_free(heap, block);
 *         my_free(block);
 *     }
 *
 *     void load_level(const char *name) {
 *         MSCOPE_SCOPE("load level");           // until the block ends
 *         struct level *level = calloc(1, sizeof *level);
 *         MSCOPE_TYPE(level, "struct level");
 *         ...
 *     }
 *
 * It is used in one of four ways, with the same source:
 *
 *   - Nothing is linked. All functions are weak: run as it is, a call costs a load and a branch that is never
 *     taken, and returns MSCOPE_ABSENT. Under `malloscope run` the recorder is there.
 *   - Linked with the shared library: `cc -DMSCOPE_LINKED ... -lmalloscope`, or what `pkg-config --cflags
 *     --libs malloscope` says. The program records itself from mscope_init() on, or from its first allocation
 *     on if the environment has MALLOSCOPE_OUTPUT or another variable of `malloscope run`.
 *   - Not linked, but opened late with dlopen, as the Python package does: mscope_start() redirects the calls
 *     of all loaded modules to the recorder, mscope_shutdown() puts back what it changed. See docs/api.md.
 *   - Linked statically: `pkg-config --static`. See docs/api.md for the linker's options.
 *
 * Every function may be called from any thread at any time. None allocates, takes a lock (where the library
 * was opened late, mscope_start and mscope_shutdown take the dynamic linker's) or prints. What a function
 * returns is an mscope_result unless it says otherwise; results may be ignored.
 */
#ifndef MALLOSCOPE_H
#define MALLOSCOPE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MSCOPE_API_VERSION 1

#ifdef MSCOPE_LINKED
#define MSCOPE_FUNCTION
#else
#define MSCOPE_FUNCTION __attribute__((weak))
#endif

typedef enum mscope_result {
    MSCOPE_OK = 0,
    MSCOPE_ABSENT = -1,       /* the recorder is not part of this process */
    MSCOPE_BAD_STATE = -2,    /* not now: see mscope_state */
    MSCOPE_BAD_ARGUMENT = -3, /* an argument makes no sense; nothing was done */
    MSCOPE_NO_HEAP = -4,      /* this heap was never registered */
    MSCOPE_UNKNOWN = -5,      /* no block that was reported is at this address (exact heaps only) */
    MSCOPE_FULL = -6,         /* a limit is reached: of heaps, of the recording's size */
    MSCOPE_FAILED = -7,       /* the system refused; errno says why */
} mscope_result;

/* What a result means, in a few words. Never NULL. */
const char *mscope_result_text(mscope_result result) MSCOPE_FUNCTION;

/* ---- States ----
 *
 *     UNINITIALIZED ── init ──► INITIALIZED ── start ──► ACTIVE ◄── start ── STOPPED
 *                                                          └────── stop ──────►┘
 *                     from any of the three: shutdown ──► TERMINATED, for good
 *
 * Under `malloscope run` the recorder is ACTIVE before main. A call that its state does not allow returns
 * MSCOPE_BAD_STATE and changes nothing. */

typedef enum mscope_state_is {
    MSCOPE_UNINITIALIZED,
    MSCOPE_INITIALIZED, /* there is a recording, and nothing goes into it yet */
    MSCOPE_ACTIVE,
    MSCOPE_STOPPED, /* allocations are not recorded; frees of recorded ones still are */
    MSCOPE_TERMINATED,
} mscope_state_is;

mscope_state_is mscope_state(void) MSCOPE_FUNCTION;

/* New options are added at the end; `size` says which ones the caller knows. Zero and NULL stand for the default: what
 * the environment says (MALLOSCOPE_RATE and so on), or else the default of `malloscope run`. */
struct mscope_options {
    size_t size; /* sizeof(struct mscope_options) */
    /* Path of the recording, with %p %e %h %t %n as in `malloscope run -o`. If the file exists and `replace` is not
     * set, the pid goes into the name. */
    const char *output;
    uint64_t rate;      /* mean bytes between two samples; 1 records everything */
    uint32_t depth;     /* the most frames of a stack that are kept */
    uint32_t stacks;    /* MSCOPE_STACKS_... */
    uint64_t max_bytes; /* the recording never grows beyond this */
    uint32_t replace;   /* 1: a recording of that name is overwritten */
};

#define MSCOPE_STACKS_BOTH    1u /* the default: scopes, and the native stack inside them */
#define MSCOPE_STACKS_NATIVE  2u
#define MSCOPE_STACKS_SCOPES  3u   /* the thread's name and its scopes; no stack is walked */
#define MSCOPE_STACKS_THREADS 0x10 /* to be added: the thread's name is the root of every stack */

/* Makes the recording. `options` may be NULL. */
mscope_result mscope_init(const struct mscope_options *options) MSCOPE_FUNCTION;
mscope_result mscope_start(void) MSCOPE_FUNCTION;
mscope_result mscope_stop(void) MSCOPE_FUNCTION;
/* Samples malloc at another rate, in each thread from its next sample on. What was sampled before keeps its weight, so
 * all figures and their errors stay right. Exact recording can neither end (MSCOPE_BAD_STATE) nor begin
 * (MSCOPE_BAD_ARGUMENT) here: it is chosen at the start. Heaps of your own keep their rates. Heaps and different rates
 * together are limited to 1,024 (MSCOPE_FULL). */
mscope_result mscope_set_rate(uint64_t rate) MSCOPE_FUNCTION;
/* The recording is complete; this process records nothing more. */
mscope_result mscope_shutdown(void) MSCOPE_FUNCTION;

/* The figures so far. The error of an estimate is half the width of its 95 % confidence interval. */
struct mscope_stats {
    size_t size; /* sizeof(struct mscope_stats), set by the caller */
    double live_bytes, live_error, live_objects;
    double peak_bytes; /* what the heap is estimated at, at the moment when it seemed largest */
    double total_bytes, total_error, total_objects;
    uint64_t samples, drops, stacks, heaps;
    uint64_t recorder_bytes; /* what the recorder takes itself, in memory and file */
    uint64_t rate;
    uint64_t live_samples;
    uint64_t max_bytes; /* the recording never grows beyond this */
    double
        watched_peak; /* the most that was live at once since mscope_watch_peak. It is the maximum of an estimate: in
                            a sampled recording it is rather too large than too small */
    uint64_t time_ns; /* since the recording's start, as samples have it */
    double peak_error;
    double peak_at_most; /* with a chance of 97.5 %, the heap was never larger than this */
};
mscope_result mscope_stats(struct mscope_stats *ret_stats) MSCOPE_FUNCTION;

/* Begins a new `watched_peak` (above): of a request, of a test. `peak_bytes` stays that of the whole recording. */
mscope_result mscope_watch_peak(void) MSCOPE_FUNCTION;

/* Copies the recording as it is now to a file, for every command of the tool: `malloscope report PATH`. The path may
 * have patterns as above; %n counts the dumps. The file appears whole or not at all. A file that exists is not
 * overwritten: MSCOPE_FAILED with errno EEXIST, unless %n makes another name. On success errno stays as it was.
 * `malloscope dump PID` makes such a copy from outside, at no cost to the program. */
mscope_result mscope_snapshot(const char *path) MSCOPE_FUNCTION;

/* Writes a copy of the recording, or another format that needs no tool. Both functions may be called in signal handlers
 * and by any number of threads at once, if your `enumerate` functions may. */
typedef enum mscope_format {
    MSCOPE_FORMAT_RECORDING,
    MSCOPE_FORMAT_HEAP, /* pprof's text format, with unbiased values: `pprof PROGRAM PATH` */
} mscope_format;
mscope_result mscope_dump(const char *path, mscope_format format) MSCOPE_FUNCTION;

/* ---- Heaps: memory that you manage yourself ----
 *
 * Report what your allocator hands out and takes back. Addresses need not be unique among heaps: an arena's
 * first object may have the address of the block that holds it. */

typedef uint32_t mscope_heap; /* 0 is no heap: reports about it return MSCOPE_NO_HEAP */

/* Called before figures are read (mscope_stats, mscope_snapshot, mscope_dump): it has to call `visit` for everything
 * that is live in the heap. */
typedef void mscope_visit(void *visitor, const void *address, size_t size, size_t count, const char *type);
typedef void mscope_enumerate(void *context, mscope_visit *visit, void *visitor);

struct mscope_heap_options {
    size_t size;                 /* sizeof(struct mscope_heap_options) */
    uint64_t rate;               /* mean bytes between two samples; 1 records everything; 0: that of malloc */
    mscope_enumerate *enumerate; /* for an allocator that lists what is live, instead of reporting blocks */
    void *context;               /* its first argument */
};

/* The name is copied, and cut at 1,000 bytes; a heap called "malloc" is shown as "malloc [registered]". Returns 0 if
 * there are too many heaps (1,024), or if the recorder is absent or TERMINATED. A heap can be registered before
 * mscope_init; reports count from mscope_init on. */
mscope_heap mscope_heap_register(const char *name, const struct mscope_heap_options *options) MSCOPE_FUNCTION;

/* A block of `size` bytes at `address`: one object, or `count` objects that live and die together. */
mscope_result mscope_heap_alloc(mscope_heap heap, const void *address, size_t size) MSCOPE_FUNCTION;
mscope_result mscope_heap_alloc_many(
    mscope_heap heap, const void *address, size_t size, size_t count) MSCOPE_FUNCTION;
mscope_result mscope_heap_free(mscope_heap heap, const void *address) MSCOPE_FUNCTION;
/* A block that was recorded keeps its type and its count of objects; in an exact heap every block does. */
mscope_result mscope_heap_resize(
    mscope_heap heap, const void *old_address, const void *new_address, size_t new_size) MSCOPE_FUNCTION;

/* Everything in the heap, or everything at addresses from `from` to below `to`, is free: an arena is reset,
 * or goes back to a mark. */
mscope_result mscope_heap_reset(mscope_heap heap) MSCOPE_FUNCTION;
mscope_result mscope_heap_reset_range(mscope_heap heap, const void *from, const void *to) MSCOPE_FUNCTION;

/* The malloc'ed `block` of `size` bytes is where this heap's objects lie: it is not counted itself, so that
 * nothing counts twice. To be called before its first object is reported. */
mscope_result mscope_heap_backing(mscope_heap heap, const void *block, size_t size) MSCOPE_FUNCTION;

/* ---- Scopes: what your program is doing ----
 *
 * Every thread has a stack of scopes. They stand around the native frames of what is allocated within. While
 * nothing is recorded they cost a load and a branch. */

/* A name that is looked up once. To be initialized with the name and 0. */
struct mscope_name {
    const char *name;
    uint32_t number;
};

/* The number of open scopes before one was entered, which mscope_scope_leave goes back to. */
typedef uint32_t mscope_scope;
#define MSCOPE_SCOPE_NONE UINT32_MAX

/* The scopes of a thread, which MSCOPE_SCOPE enters and leaves without a call. */
#define MSCOPE_SCOPES_KEPT 128
struct mscope_scopes {
    uint32_t depth;         /* number of open scopes, including those beyond MSCOPE_SCOPES_KEPT */
    uint32_t ignored;       /* calls of mscope_ignore_begin that have not ended */
    uint32_t thread, asked; /* the number of the thread's name, and how often it was asked for */
    struct {
        uint64_t place; /* the stack pointer of the function that entered the scope */
        uint32_t name;
    } kept[MSCOPE_SCOPES_KEPT];
};
/* 0 while scopes are not noted. Otherwise the distance from the thread pointer to the pointer to the thread's
 * scopes. */
extern intptr_t mscope_scopes_on MSCOPE_FUNCTION;

mscope_scope mscope_scope_enter(struct mscope_name *name) MSCOPE_FUNCTION;
void mscope_scope_leave(mscope_scope scope) MSCOPE_FUNCTION;

/* For names that are made at run time, and for other languages. The name is copied. An end without a beginning is
 * ignored. */
void mscope_scope_begin(const char *name) MSCOPE_FUNCTION;
void mscope_scope_end(void) MSCOPE_FUNCTION;

/* What the thread allocates between the two calls, by malloc or in a heap, is not recorded. The calls nest. */
void mscope_ignore_begin(void) MSCOPE_FUNCTION;
void mscope_ignore_end(void) MSCOPE_FUNCTION;

/* ---- Types: what your memory holds ---- */

/* Names the type of a block: one that malloc returned, or, for mscope_heap_type, one that the heap was told about. May
 * be called again. */
mscope_result mscope_type(const void *block, struct mscope_name *type) MSCOPE_FUNCTION;
mscope_result mscope_type_named(const void *block, const char *type) MSCOPE_FUNCTION;
mscope_result mscope_heap_type(mscope_heap heap, const void *block, const char *type) MSCOPE_FUNCTION;

/* ---- The register: addresses and what is known of them, for purposes of your own ----
 *
 * It is independent of the recording, and needs no recorder to be ACTIVE. Its memory comes from mmap. It may be used
 * by any number of threads and by signal handlers, also for one address: every call but mscope_register_each takes
 * effect at one moment between its beginning and its end. So if two threads remove an address at once, one gets it
 * and the other gets MSCOPE_UNKNOWN; if two insert it at once, size and context are those of the later one; what
 * mscope_register_find returns was inserted by one call. No thread ever waits for another. The one exception is
 * mscope_register_free: no other thread may be using the register then. */

struct mscope_register;

struct mscope_registered {
    const void *address;
    size_t size;
    uint64_t context; /* whatever you like */
};

/* Makes a register for up to `capacity` addresses (0: as many as there is memory for). NULL: there is no memory. */
struct mscope_register *mscope_register_new(size_t capacity) MSCOPE_FUNCTION;
void mscope_register_free(struct mscope_register *reg) MSCOPE_FUNCTION;
/* An address that is there already gets the new size and context. MSCOPE_FULL: there is no room, or no memory. */
mscope_result mscope_register_insert(
    struct mscope_register *reg, const void *address, size_t size, uint64_t context) MSCOPE_FUNCTION;
/* `ret_removed` and `ret_found` may be NULL. MSCOPE_UNKNOWN: the address is not there. */
mscope_result mscope_register_remove(
    struct mscope_register *reg, const void *address, struct mscope_registered *ret_removed) MSCOPE_FUNCTION;
mscope_result mscope_register_find(
    struct mscope_register *reg, const void *address, struct mscope_registered *ret_found) MSCOPE_FUNCTION;
/* MSCOPE_UNKNOWN: the address is not there. MSCOPE_FULL: there is no memory. */
mscope_result mscope_register_set_context(
    struct mscope_register *reg, const void *address, uint64_t context) MSCOPE_FUNCTION;
/* Visits every address that is there from the beginning to the end of the call once. Addresses that are inserted or
 * removed meanwhile may be visited or not. `visit` may change the register. */
mscope_result mscope_register_each(struct mscope_register *reg,
    void (*visit)(void *context, const struct mscope_registered *entry), void *context) MSCOPE_FUNCTION;
/* Memory that the register takes, and how many addresses it holds. */
size_t mscope_register_overhead(struct mscope_register *reg) MSCOPE_FUNCTION;
size_t mscope_register_count(struct mscope_register *reg) MSCOPE_FUNCTION;

/* ---- How calls are made where the recorder may be absent ---- */

#ifdef MSCOPE_LINKED
#define MSCOPE_SCOPES_PRESENT 1
#define MSCOPE_SCOPES_ON      __atomic_load_n(&mscope_scopes_on, __ATOMIC_RELAXED)
#else
/* Each macro below has the name of a function. Where no parenthesis follows the name, the function is meant. They take
 * any number of arguments, because the preprocessor takes every comma for the end of one that no parenthesis
 * encloses: also one between the members of a compound literal, or between the arguments of a template. */
#define MSCOPE_SCOPES_PRESENT (&mscope_scopes_on != NULL)
#define MSCOPE_SCOPES_ON      (MSCOPE_SCOPES_PRESENT ? __atomic_load_n(&mscope_scopes_on, __ATOMIC_RELAXED) : 0)
#define mscope_result_text(...)                                                                              \
    (mscope_result_text ? (mscope_result_text)(__VA_ARGS__) : "the recorder is not part of this process")
#define mscope_state()            (mscope_state ? (mscope_state)() : MSCOPE_UNINITIALIZED)
#define mscope_init(...)          (mscope_init ? (mscope_init)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_start()            (mscope_start ? (mscope_start)() : MSCOPE_ABSENT)
#define mscope_stop()             (mscope_stop ? (mscope_stop)() : MSCOPE_ABSENT)
#define mscope_set_rate(...)      (mscope_set_rate ? (mscope_set_rate)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_shutdown()         (mscope_shutdown ? (mscope_shutdown)() : MSCOPE_ABSENT)
#define mscope_stats(...)         (mscope_stats ? (mscope_stats)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_watch_peak()       (mscope_watch_peak ? (mscope_watch_peak)() : MSCOPE_ABSENT)
#define mscope_snapshot(...)      (mscope_snapshot ? (mscope_snapshot)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_dump(...)          (mscope_dump ? (mscope_dump)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_heap_register(...) (mscope_heap_register ? (mscope_heap_register)(__VA_ARGS__) : 0)
#define mscope_heap_alloc(...)    (mscope_heap_alloc ? (mscope_heap_alloc)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_heap_alloc_many(...)                                                                          \
    (mscope_heap_alloc_many ? (mscope_heap_alloc_many)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_heap_free(...)   (mscope_heap_free ? (mscope_heap_free)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_heap_resize(...) (mscope_heap_resize ? (mscope_heap_resize)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_heap_reset(...)  (mscope_heap_reset ? (mscope_heap_reset)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_heap_reset_range(...)                                                                         \
    (mscope_heap_reset_range ? (mscope_heap_reset_range)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_heap_backing(...)  (mscope_heap_backing ? (mscope_heap_backing)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_scope_enter(...)   (mscope_scope_enter ? (mscope_scope_enter)(__VA_ARGS__) : MSCOPE_SCOPE_NONE)
#define mscope_scope_leave(...)   (mscope_scope_leave ? (mscope_scope_leave)(__VA_ARGS__) : (void)0)
#define mscope_scope_begin(...)   (mscope_scope_begin ? (mscope_scope_begin)(__VA_ARGS__) : (void)0)
#define mscope_scope_end()        (mscope_scope_end ? (mscope_scope_end)() : (void)0)
#define mscope_ignore_begin()     (mscope_ignore_begin ? (mscope_ignore_begin)() : (void)0)
#define mscope_ignore_end()       (mscope_ignore_end ? (mscope_ignore_end)() : (void)0)
#define mscope_type(...)          (mscope_type ? (mscope_type)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_type_named(...)    (mscope_type_named ? (mscope_type_named)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_heap_type(...)     (mscope_heap_type ? (mscope_heap_type)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_register_new(...)  (mscope_register_new ? (mscope_register_new)(__VA_ARGS__) : NULL)
#define mscope_register_free(...) (mscope_register_free ? (mscope_register_free)(__VA_ARGS__) : (void)0)
#define mscope_register_insert(...)                                                                          \
    (mscope_register_insert ? (mscope_register_insert)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_register_remove(...)                                                                          \
    (mscope_register_remove ? (mscope_register_remove)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_register_find(...) (mscope_register_find ? (mscope_register_find)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_register_set_context(...)                                                                     \
    (mscope_register_set_context ? (mscope_register_set_context)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_register_each(...)     (mscope_register_each ? (mscope_register_each)(__VA_ARGS__) : MSCOPE_ABSENT)
#define mscope_register_overhead(...) (mscope_register_overhead ? (mscope_register_overhead)(__VA_ARGS__) : 0)
#define mscope_register_count(...)    (mscope_register_count ? (mscope_register_count)(__VA_ARGS__) : 0)
#endif

/* ---- Macros ---- */

#define MSCOPE_JOIN_(a, b) a##b
#define MSCOPE_JOIN(a, b)  MSCOPE_JOIN_(a, b)

/* Inlined even without optimization: a scope's place among the frames is that of the function that calls these. */
#define MSCOPE_INLINE static inline __attribute__((always_inline))

/* A signal handler may enter scopes, too. If it comes before `depth` changes, it writes to this element, and the
 * element is written once more. If it comes later, it finds the scope there and leaves it alone. */
MSCOPE_INLINE mscope_scope mscope_scope_push(
    struct mscope_scopes *scopes, uint32_t depth, uint32_t name, uint64_t place) {
    volatile uint64_t *its_place = &scopes->kept[depth].place;
    volatile uint32_t *its_name = &scopes->kept[depth].name;
    *its_name = name;
    *its_place = place;
    *(volatile uint32_t *)&scopes->depth = depth + 1;
    if (__builtin_expect(*its_place != place, 0)) {
        *its_name = name;
        *its_place = place;
    }
    return depth;
}

#ifdef __x86_64__
MSCOPE_INLINE struct mscope_scopes *mscope_scopes_at(intptr_t distance) {
    struct mscope_scopes *scopes;
    __asm__ volatile("mov %%fs:(%1), %0" : "=r"(scopes) : "r"(distance) : "memory");
    return scopes;
}
#endif

MSCOPE_INLINE mscope_scope mscope_scope_enter_at(struct mscope_name *name, intptr_t on) {
    (void)on;
#ifdef __x86_64__ /* elsewhere the function may not have changed the stack pointer yet: it is the caller's */
    struct mscope_scopes *scopes = mscope_scopes_at(on);
    uint32_t number = __atomic_load_n(&name->number, __ATOMIC_RELAXED);
    if (scopes && number) {
        uint32_t depth = scopes->depth;
        uint64_t place;
        __asm__ volatile("mov %%rsp, %0" : "=r"(place) : : "memory");
        if (depth < MSCOPE_SCOPES_KEPT && (!depth || scopes->kept[depth - 1].place > place))
            return mscope_scope_push(scopes, depth, number, place);
    }
#endif
    return (mscope_scope_enter)(name);
}

MSCOPE_INLINE mscope_scope mscope_scope_enter_if_on(struct mscope_name *name) {
    intptr_t on = 0;
    if (__builtin_expect(MSCOPE_SCOPES_PRESENT && (on = MSCOPE_SCOPES_ON) != 0, 0))
        return mscope_scope_enter_at(name, on);
    return MSCOPE_SCOPE_NONE;
}

MSCOPE_INLINE void mscope_scope_leave_at(mscope_scope scope, intptr_t on) {
    (void)on;
#ifdef __x86_64__
    struct mscope_scopes *scopes = on ? mscope_scopes_at(on) : NULL;
    if (scopes) {
        volatile uint32_t *depth = &scopes->depth;
        if (scope < *depth) *depth = scope;
        return;
    }
#endif
    (mscope_scope_leave)(scope);
}

MSCOPE_INLINE void mscope_scope_leave_it(const mscope_scope *scope) {
    if (__builtin_expect(*scope != MSCOPE_SCOPE_NONE, 0)) mscope_scope_leave_at(*scope, MSCOPE_SCOPES_ON);
}
MSCOPE_INLINE void mscope_ignore_end_it(const int *unused) {
    (void)unused;
    mscope_ignore_end();
}

/* A scope until the end of the enclosing block, in C and in C++. `text` is a literal. */
#define MSCOPE_SCOPE(text) MSCOPE_SCOPE_NUMBERED(text, __COUNTER__)
#define MSCOPE_SCOPE_NUMBERED(text, number)                                                                  \
    static struct mscope_name MSCOPE_JOIN(mscope_name_, number) = {text, 0};                                 \
    __attribute__((cleanup(mscope_scope_leave_it), unused)) const mscope_scope MSCOPE_JOIN(                  \
        mscope_scope_, number) = mscope_scope_enter_if_on(&MSCOPE_JOIN(mscope_name_, number))

/* What is allocated until the end of the enclosing block is not recorded. */
#define MSCOPE_IGNORE() MSCOPE_IGNORE_NUMBERED(__COUNTER__)
#define MSCOPE_IGNORE_NUMBERED(number)                                                                       \
    mscope_ignore_begin();                                                                                   \
    __attribute__((cleanup(mscope_ignore_end_it), unused)) const int MSCOPE_JOIN(mscope_ignore_, number) = 0

/* Names the type of a block. The value is the block. `text` is a literal. */
#define MSCOPE_TYPE(block, text)                                                                             \
    (__extension__({                                                                                         \
        static struct mscope_name mscope_type_name = {text, 0};                                              \
        __typeof__(block) mscope_typed = (block);                                                            \
        if (__builtin_expect(MSCOPE_SCOPES_ON, 0)) (mscope_type)(mscope_typed, &mscope_type_name);           \
        mscope_typed;                                                                                        \
    }))

#ifdef __cplusplus
}
#endif
#endif
