#include "record/life/start.h"

#include "core/module_table.h"
#include "core/recording_begin.h"
#include "platform/calls.h"
#include "platform/signals.h"
#include "record/api/own_heaps.h"
#include "record/api/scopes.h"
#include "record/dump/dump_triggers.h"
#include "record/intercept/hooks.h"
#include "record/intercept/real_allocator.h"
#include "record/life/exec.h"
#include "record/life/fork.h"
#include "record/life/options.h"
#include "record/life/thread.h"
#include "record/python/python.h"
#include "record/sample/capture_buffers.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#define FIRST_SAMPLED (UINT64_C(1) << 20)
#define FIRST_EXACT   (UINT64_C(8) << 20)
#define INDEX_SAMPLED 256u /* buckets of the index's first segment: room for 1,280 blocks */
#define INDEX_EXACT   8192u
#define ATTEMPTS      1000u
#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

/* The pattern of the recording's name, from which forked children make theirs. */
static char pattern[RECORDING_PATH_MAX];

/* Keeps the pattern as an absolute one, because a forked child may work in another folder. In the folder's name '%' is
 * doubled: it stands for itself. Where the folder is not known or does not fit, the pattern stays as it is. */
static void keep_pattern(const char *output) {
    char folder[RECORDING_PATH_MAX];
    size_t length = 0, rest = strlen(output) + 1;
    if (*output != '/' && system_call(SYS_getcwd, (uintptr_t)folder, sizeof folder, 0, 0, 0, 0) > 0 &&
        folder[0] == '/') {
        for (const char *at = folder; *at && length + 2 < sizeof pattern; at++) {
            if (*at == '%') pattern[length++] = '%';
            pattern[length++] = *at;
        }
        pattern[length++] = '/';
    }
    if (length + rest > sizeof pattern) length = 0;
    memcpy(pattern + length, output, rest);
}

/* Whether pointers to blocks have tags (mark_is_tagged in mark.h). */
static bool heap_is_tagged(void) {
    int control = call_prctl(PR_GET_TAGGED_ADDR_CTRL, 0);
    return control > 0 && control & PR_MTE_TCF_MASK;
}

/* One line on standard error, without stdio, which may allocate. */
static void say_why_not(const char *path, int error) {
    char line[RECORDING_PATH_MAX + 256];
    size_t length = 0;
    const char *parts[] = {"malloscope: cannot record into '", path, "': ", strerrordesc_np(error),
        ". The program runs on without being recorded.\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const char *at = parts[i] ? parts[i] : "?"; *at && length < sizeof line; at++)
            line[length++] = *at;
    call_write(STDERR_FILENO, line, length);
}

static uint64_t note_executable(struct recording *recording) {
    char path[RECORDING_PATH_MAX];
    long length = call_readlink("/proc/self/exe", path, sizeof path);
    return length > 0 ? arena_text(recording, path, (size_t)length) : 0;
}

static uint64_t note_command_line(struct recording *recording) {
    char text[RECORDING_PATH_MAX];
    int file = call_open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0);
    long length = file < 0 ? -1 : call_read(file, text, sizeof text);
    if (file >= 0) call_close(file);
    if (length <= 0) return 0;
    if (text[length - 1] == '\0') length--;
    for (long i = 0; i < length; i++)
        if (text[i] == '\0') text[i] = ARGUMENT_END;
    return arena_text(recording, text, (size_t)length);
}

static int make_recording(const struct options *options, uint64_t start, char *path) {
    struct recording *recording = &recorder.recording;
    uint64_t first = recorder.exact ? FIRST_EXACT : FIRST_SAMPLED;
    int r = -EEXIST;
    for (unsigned attempt = 0; r == -EEXIST && attempt < ATTEMPTS; attempt++) {
        if (!options_path(options->output, call_getpid(), attempt, path, RECORDING_PATH_MAX))
            return -ENAMETOOLONG;
        r = arena_create(recording, path, options->replace, first, options_size_max(options));
    }
    if (r < 0) return r;

    struct recording_setup setup = {
        .pid = call_getpid(),
        .parent_pid = call_getppid(),
        .machine = MACHINE,
        .filter = recorder.marks ? FILTER_MARK : FILTER_LOOKUP,
        .depth = recorder.depth,
        .rate = recorder.rate,
        .seed = recorder.seed,
        .start_monotonic = start,
        .start_realtime = clock_kernel(CLOCK_REALTIME),
    };
    if (!recording_begin(recording, &setup)) {
        arena_discard(recording);
        return -ENOSPC;
    }
    struct recording_header *header = recording->header;
    header->executable = note_executable(recording);
    header->command_line = note_command_line(recording);
    header->allocator = arena_text(recording, real_allocator_module(), strlen(real_allocator_module()));
    recording_begin_publish(recording);
    return 0;
}

int start_in_child(const struct recording_header *parent) {
    static char path[RECORDING_PATH_MAX];
    struct options options = {.output = pattern, .size_max = parent->size_max};
    uint64_t start = parent->start_monotonic, realtime = parent->start_realtime;
    int r = make_recording(&options, start, path);
    /* The child's clock has the parent's zero, because the births of inherited blocks are in the parent's time. */
    if (r == 0) recorder.recording.header->start_realtime = realtime;
    return r;
}

/* Stack capture reports every module before it stores a frame in it (unwind_note). */
static uint32_t note_module(const struct mapped_code *code) {
    uint32_t number = module_table_note(&recorder.recording, code, clock_now());
    if (recorder.shows_python) python_note_module(code, number);
    return number;
}

/* Makes the capture buffers and watches forks: once, though a program may try several times to start
 * (mscope_init). Larger buffers are made if a later attempt wants deeper stacks. A buffer holds frames and places
 * of three stacks (merge_python in recorder.c): the native one and the interpreter's of `depth` words each, the
 * merged one of twice as many. */
static bool prepare(void) {
    static uint32_t depth;
    static bool watches;
    if (recorder.depth > depth && !capture_buffers_start(8 * recorder.depth + 2 * SCOPES_ROOM)) return false;
    if (recorder.depth > depth) depth = recorder.depth;
    return watches || (watches = fork_watch());
}

/* Makes the recording's file. Returns 0 or a negative errno; `path` is then the last name that was tried, or "". */
static int open_recording(const struct options *options, uint64_t start, char *path) {
    if (getauxval(AT_SECURE) || !system_calls_allowed()) return -EPERM;
    if (real_allocator_is_shadowed()) return -ENOTSUP;
    if (!options->is_root && !options->follow) return -ECANCELED;
    if (strlen(options->output) >= sizeof pattern) return -ENAMETOOLONG;
    if (!prepare()) return -ENOMEM;
    options_find_program();
    return make_recording(options, start, path);
}

/* From STARTING to RECORDING; or to the stage `otherwise`, and returns a negative errno. `at_once`: recording is
 * active from the beginning. */
static int start_with(const struct options *options, bool at_once, enum stage otherwise, char *path) {
    int error = errno; /* what the program's allocator and libc's lists need may change it */
    bool early = otherwise == OFF;
    recorder.rate = options->rate;
    recorder.exact = options->rate == 1;
    recorder.seed = options->seed;
    recorder.follow = options->follow;
    recorder.depth = (uint32_t)options->depth;
    recorder.walks = options->stacks != STACKS_SCOPES;
    recorder.marks = real_allocator_bears_marks() && !heap_is_tagged();
    recorder.index.first = recorder.exact ? INDEX_EXACT : INDEX_SAMPLED;
    recorder.heap_index.first = INDEX_SAMPLED;
    uint64_t start = clock_kernel(CLOCK_MONOTONIC);
    clock_start(start);
    path[0] = '\0';
    int r = open_recording(options, start, path);

    if (r == 0) {
        keep_pattern(options->output);
        recorder.is_root = options->is_root;
        thread_start();
        recorder.shows_python = options->stacks != STACKS_NATIVE;
        unwind_start(note_module, early);
        scopes_choose(options->thread_frames || !recorder.walks, options->stacks != STACKS_NATIVE);
        if (recorder.shows_python) python_start(options->python_objects && early);
        own_heaps_start();
        if (!at_once) {
            atomic_store(&recorder.recording.header->active, 0);
            atomic_fetch_or(&recorder.recording.header->flags, RECORDING_PAUSED);
        }
        recorder.was_started = at_once;
    } else {
        recorder.marks = true; /* nothing will be sampled: free goes straight to the allocator */
    }
    hooks_choose_usable_size(recorder.marks);
    hooks_treat_unmarked(recorder.exact && r == 0 ? UNMARKED_LOOK_UP
                         : recorder.marks         ? UNMARKED_IGNORE
                                                  : UNMARKED_FILTER);
    /* The owner word first: a thread that sees RECORDING and an owner word of 0 takes this process for a forked
     * child. Release: pairs with the acquire loads of recorder_is_recording and of the stage; a thread that sees
     * the new value sees the recorder set up. */
    if (r == 0) atomic_store_explicit(recorder.owner, 1, memory_order_release);
    atomic_store_explicit(&recorder.stage, r == 0 ? RECORDING : otherwise, memory_order_release);
    if (r == 0) scopes_switch(at_once);
    if (r == 0) dump_triggers_start(options);
    errno = error;
    return r;
}

void start_by_environment(void) {
    struct options options;
    int stage = NOT_STARTED;
    if (atomic_load_explicit(&recorder.stage, memory_order_relaxed) != NOT_STARTED) return;
    if (!real_allocator_ready()) return; /* too early: the next allocation tries again */
    HOLD_SIGNALS; /* a child that a handler forked would go on with the file that is being made */
    if (!atomic_compare_exchange_strong(&recorder.stage, &stage, STARTING)) return;
    if (!options_read(&options)) {
        atomic_store_explicit(&recorder.stage, NOT_STARTED, memory_order_release); /* likewise */
        return;
    }
#ifndef MALLOSCOPE_STATIC /* no library is preloaded into such a program */
    exec_begin(&options);
#endif
    if (!options.is_wanted || real_allocator_is_late()) {
        hooks_choose_usable_size(true);
        hooks_treat_unmarked(UNMARKED_IGNORE);
        atomic_store_explicit(&recorder.stage, DORMANT, memory_order_release);
        return;
    }
    char path[RECORDING_PATH_MAX];
    int r = start_with(&options, true, OFF, path);
    if (r < 0 && options.is_root) say_why_not(path[0] ? path : options.output, -r);
}

int start_by_program(const struct options *options) {
    int stage = DORMANT;
    HOLD_SIGNALS; /* as above */
    if (!atomic_compare_exchange_strong(&recorder.stage, &stage, STARTING)) return -EALREADY;
    char path[RECORDING_PATH_MAX];
    int r = start_with(options, false, DORMANT, path);
    /* The other threads notice within DORMANT_INTERVAL bytes. */
    if (r == 0) recorder_countdown = 0;
    return r;
}
