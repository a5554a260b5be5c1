#include "record/dump/dump_triggers.h"

#include "base/dump_schedule.h"
#include "base/limits.h"
#include "core/events.h"
#include "core/heap_size.h"
#include "core/heap_table.h"
#include "core/sampler.h"
#include "platform/calls.h"
#include "platform/counter.h"
#include "record/dump/dump.h"
#include "record/life/options.h"
#include "record/sample/recorder_state.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

bool dump_triggers_want_samples;

static struct {
    char pattern[RECORDING_PATH_MAX]; /* absolute; empty while no dumps are wanted */
    enum dump_format format;
    struct dump_schedule when;
    _Atomic unsigned made;       /* dumps, for their names */
    _Atomic uint64_t allocated;  /* bytes that samples stand for, since the start */
    _Atomic uint64_t next_bytes; /* a dump is due when `allocated` reaches this */
    _Atomic uint64_t next_time;  /* likewise for the time */
    _Atomic uint64_t peak;       /* 0 while nobody has asked for it */
    /* Process ids, because a forked child inherits this memory: the process that is writing a dump (0: none),
     * and the one that has written its dump at exit. */
    _Atomic int writer, ended;
    _Atomic bool complained; /* about a dump that could not be written */
} state;

static struct iovec part(const char *text) {
    return (struct iovec){(void *)text, strlen(text)};
}

/* Parts of one line, written to standard error at once: no other output comes in between. */
static void say(const struct iovec *parts, size_t count) {
    system_call(SYS_writev, STDERR_FILENO, (uint64_t)parts, count, 0, 0, 0);
}

/* "BEFORE WHAT AFTER", where `what` need not end with a zero. */
static void say_of(const char *before, const char *what, size_t what_length, const char *after) {
    struct iovec parts[] = {part(before), {(void *)what, what_length}, part(after), part("\n")};
    say(parts, sizeof parts / sizeof *parts);
}

/* Says once that a dump could not be written: the next one will most likely fail for the same reason. */
static void complain(int error) {
    /* Relaxed: the exchange alone decides which of several threads speaks. */
    if (atomic_exchange_explicit(&state.complained, true, memory_order_relaxed)) return;
    const char *reason = strerrordesc_np(-error);
    struct iovec parts[] = {part("malloscope: cannot write a dump to '"), part(state.pattern), part("': "),
        part(reason ? reason : "?"),
        part(". Recording goes on. Choose another place with MALLOSCOPE_DUMP or --dump.\n")};
    say(parts, sizeof parts / sizeof *parts);
}

static void write_dump(void) {
    int error = errno;
    int r = dump_write(state.pattern, state.format, &state.made);
    if (r < 0 && r != -ECANCELED) complain(r);
    errno = error;
}

/* Writes a dump, unless this process is writing one. */
static void write_unless_busy(void) {
    int self = call_getpid(), writer = atomic_load_explicit(&state.writer, memory_order_relaxed);
    /* Acquire, and release at the end: a dump sees `state` as the dump before it left it. If `writer` is
     * another process, this is a forked child, and the thread that was writing is not in it. */
    if (writer == self || !atomic_compare_exchange_strong_explicit(
                              &state.writer, &writer, self, memory_order_acquire, memory_order_relaxed))
        return;
    write_dump();
    atomic_store_explicit(&state.writer, 0, memory_order_release);
}

/* ---- every so many bytes or seconds ---- */

/* Whether `now` has reached `*next`. Several threads may find it reached; one of them gets true, and moves
 * `*next` to the first multiple of `step` beyond `now`. Relaxed: the exchange alone decides which one, and no
 * other memory depends on it. */
static bool is_due(_Atomic uint64_t *next, uint64_t now, uint64_t step) {
    uint64_t due = atomic_load_explicit(next, memory_order_relaxed);
    return step && now >= due &&
           atomic_compare_exchange_strong_explicit(
               next, &due, now - now % step + step, memory_order_relaxed, memory_order_relaxed);
}

static void note_peak(void) {
    if (!counter_load(&state.peak)) return;
    counter_raise(false, &state.peak, heap_size(&recorder.recording));
}

void dump_triggers_note(struct sample sample) {
    note_peak();
    uint64_t rate = heap_table_rate(&recorder.recording, sample.heap);
    uint64_t bytes = sampler_weight(sample.size, rate) / BYTE_ONE;
    /* Relaxed: a sum, by which nothing else is ordered. */
    uint64_t allocated = atomic_fetch_add_explicit(&state.allocated, bytes, memory_order_relaxed) + bytes;
    bool enough = is_due(&state.next_bytes, allocated, state.when.every_bytes);
    bool late = is_due(&state.next_time, sample.birth, state.when.every_nanoseconds);
    if (enough || late) write_unless_busy();
}

/* ---- the peak since some moment, for mscope_watch_peak ---- */

void dump_triggers_watch_peak(void) {
    uint64_t live = heap_size(&recorder.recording);
    counter_store(&state.peak, live ? live : 1); /* 0 would say that nobody asked */
    dump_triggers_want_samples = true;
}

uint64_t dump_triggers_peak(void) {
    return counter_load(&state.peak);
}

/* ---- at exit ---- */

/* Also while another thread is writing a dump: there is no later moment for this one. */
void dump_triggers_at_exit(void) {
    int self = call_getpid();
    /* Relaxed: as in complain. */
    if (!state.when.at_exit || atomic_exchange_explicit(&state.ended, self, memory_order_relaxed) == self)
        return;
    write_dump();
}

/* ---- on a signal ---- */

static void on_signal(int signal) {
    (void)signal;
    write_unless_busy();
}

/* What the kernel knows of a handler. */
struct handling {
    void (*handler)(int);
    uint64_t flags;
    void (*restorer)(void); /* where the handler returns to */
    uint64_t mask;
};

#if defined(__x86_64__)
void entry_signal_return(void);
#define RESTORER_FLAG UINT64_C(0x04000000)
#define RESTORER      entry_signal_return
#else
#define RESTORER_FLAG 0 /* handlers return to the kernel's vDSO */
#define RESTORER      NULL
#endif

static bool is_of_program(const struct handling *action) {
    if (action->flags & SA_SIGINFO) return true;
    return action->handler != SIG_DFL && action->handler != SIG_IGN && action->handler != on_signal;
}

static int handle(int number, const struct handling *action, struct handling *ret_former) {
    return (int)system_call(SYS_rt_sigaction, (uint64_t)number, (uint64_t)action, (uint64_t)ret_former,
        sizeof action->mask, 0, 0);
}

static void take_signal(const char *name) {
    int number = dump_schedule_read_signal(name);
    uint64_t flags = SA_RESTART | SA_ONSTACK | RESTORER_FLAG;
    struct handling action = {.handler = on_signal, .flags = flags, .restorer = RESTORER}, former;
    if (number <= 0) {
        say_of("malloscope: MALLOSCOPE_SIGNAL=", name, strlen(name),
            number ? " cannot be taken for dumps: no program can go on after it. Use USR1 or USR2."
                   : " is no signal. Use a name such as USR2, or a number.");
        return;
    }
    if (handle(number, NULL, &former) == 0 && is_of_program(&former))
        say_of("malloscope: the program has a handler for MALLOSCOPE_SIGNAL=", name, strlen(name),
            ", which stays. Choose another signal for dumps.");
    else
        handle(number, &action, NULL);
}

/* ---- the start ---- */

/* Makes the pattern absolute: the program may change its folder later, and a relative name means the folder in
 * which it was started. False: it is too long. */
static bool keep_pattern(const char *pattern) {
    char *at = state.pattern, *end = at + sizeof state.pattern;
    if (*pattern != '/') {
        char folder[RECORDING_PATH_MAX];
        if (call_getcwd(folder, sizeof folder) <= 0) return false;
        for (const char *from = folder; *from; from++) {
            if (end - at < 3) return false;
            if (*from == '%') *at++ = '%'; /* %% in a pattern is a percent sign */
            *at++ = *from;
        }
        *at++ = '/';
    }
    size_t length = strlen(pattern);
    if ((size_t)(end - at) <= length) return false;
    memcpy(at, pattern, length + 1);
    return true;
}

/* What the user says, or else what the ending of the name says. */
static enum dump_format format_of(const char *format, const char *pattern) {
    static const char ending[] = ".mscope";
    size_t length = strlen(pattern);
    if (format && strcmp(format, "recording") == 0) return DUMP_RECORDING;
    if (format && strcmp(format, "heap") == 0) return DUMP_HEAP;
    bool named = length > sizeof ending - 1 && strcmp(pattern + length - (sizeof ending - 1), ending) == 0;
    return named ? DUMP_RECORDING : DUMP_HEAP;
}

void dump_triggers_start(const struct options *options) {
    if (!options->dump && !options->dump_at && !options->dump_signal) return;
    const char *bad, *pattern = options->dump ? options->dump : DEFAULT_DUMP_PATTERN;
    size_t bad_length;
    if (!keep_pattern(pattern)) {
        say_of("malloscope: the name of the dumps is too long: '", pattern, strlen(pattern),
            "'. There will be none.");
        return;
    }
    state.format = format_of(options->dump_format, pattern);
    state.when.at_exit = !options->dump_signal; /* unless dump_at says otherwise */
    if (options->dump_at && !dump_schedule_read(options->dump_at, &state.when, &bad, &bad_length))
        say_of("malloscope: MALLOSCOPE_DUMP_AT does not know '", bad, bad_length,
            "'. Use exit, a size such as 100M, or a time such as 10s.");
    state.next_bytes = state.when.every_bytes;
    state.next_time = state.when.every_nanoseconds;
    dump_triggers_want_samples = state.when.every_bytes || state.when.every_nanoseconds;
    if (options->dump_signal) take_signal(options->dump_signal);
}
