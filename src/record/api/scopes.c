#define MSCOPE_LINKED
#include "record/api/scopes.h"

#include "base/limits.h"
#include "core/name_table.h"
#include "malloscope.h"
#include "platform/calls.h"
#include "platform/pages.h"
#include "record/intercept/export.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"
#include "record/sample/work.h"

#include <sys/prctl.h>

/* The stack pointer of the function that called this one, at the call. */
#define STACK_POINTER ((uintptr_t)__builtin_dwarf_cfa())

/* Bytes of stack that a function which wraps mscope_scope_begin, and has returned since, may have taken: wrappers in
 * other languages, constructors of scope objects. */
#define WRAPPER_ROOM 4096u

/* The kernel is asked for the thread's name at each of the first samples, because threads are often named shortly after
 * their start; later at one in so many. */
#define ASKED_ALWAYS 8u
#define ASKED_EACH   64u

__thread struct mscope_scopes *scopes_of_thread;
EXPORT intptr_t mscope_scopes_on;
static bool threads_are_frames, scopes_are_frames;

/* Relaxed: it does not matter whether a scope that is entered while the switch changes is noted. */
static inline intptr_t scopes_on(void) {
    return __atomic_load_n(&mscope_scopes_on, __ATOMIC_RELAXED);
}

void scopes_switch(bool on) {
    intptr_t distance = (intptr_t)((uintptr_t)&scopes_of_thread - thread_pointer());
    __atomic_store_n(&mscope_scopes_on, on ? distance : 0, __ATOMIC_RELAXED);
}

void scopes_choose(bool threads, bool scopes) {
    threads_are_frames = threads;
    scopes_are_frames = scopes;
}

static __attribute__((noinline, cold)) struct mscope_scopes *make_scopes(void) {
    RECORDER_WORKS;
    if (!recorder_is_ready() || !recorder_knows_thread()) return NULL;
    void *memory = pages_take(sizeof(struct mscope_scopes));
    /* A signal handler that came meanwhile may have made some, too. Its scopes are closed again: its memory is lost,
     * and nothing else. */
    if (memory) scopes_of_thread = memory;
    return scopes_of_thread;
}

void scopes_free(void) {
    struct mscope_scopes *scopes = scopes_of_thread;
    scopes_of_thread = NULL; /* first: a signal handler that comes now must not use the memory */
    atomic_signal_fence(memory_order_seq_cst);
    if (scopes) pages_give(scopes, sizeof *scopes);
}

/* ---- entering and leaving ---- */

/* Enters a scope; returns the depth before. Beyond SCOPES_KEPT scopes are only counted. */
static inline mscope_scope push(struct mscope_scopes *scopes, uint32_t name, uint64_t place) {
    uint32_t depth = scopes->depth;
    if (__builtin_expect(depth < SCOPES_KEPT, 1)) return mscope_scope_push(scopes, depth, name, place);
    if (depth < MSCOPE_SCOPE_NONE - 1) scopes->depth++;
    return depth;
}

static __attribute__((noinline, cold)) uint32_t note(const char *name) {
    RECORDER_WORKS;
    if (!name || !recorder_is_ready()) return NAME_NONE;
    return name_table_note(&recorder.recording, name);
}

static __attribute__((noinline, cold)) mscope_scope enter_first(struct mscope_name *name, uint64_t place) {
    if (!name || (!scopes_of_thread && !make_scopes())) return MSCOPE_SCOPE_NONE;
    uint32_t number = note(name->name);
    /* Relaxed: name_table_note has published the name, and gives all threads one number for it. */
    __atomic_store_n(&name->number, number, __ATOMIC_RELAXED);
    return push(scopes_of_thread, number, place);
}

/* Enters a scope while the last one has a place that is not further out (not at a higher address). That one was entered
 * by the same function; or on another stack, in a coroutine; or by a function that ended without leaving it, by
 * longjmp. A scope of this name and place that is open already is not entered again. Otherwise scopes that were left by
 * longjmp would pile up. The result is then the present depth, so that leaving it changes nothing. */
static __attribute__((noinline, cold)) mscope_scope enter_beside(
    struct mscope_scopes *scopes, uint32_t name, uint64_t place) {
    for (uint32_t i = scopes->depth; i-- > 0 && scopes->kept[i].place <= place;)
        if (scopes->kept[i].name == name && scopes->kept[i].place == place) return scopes->depth;
    return push(scopes, name, place);
}

EXPORT mscope_scope mscope_scope_enter(struct mscope_name *name) {
    if (!scopes_on()) return MSCOPE_SCOPE_NONE;
    struct mscope_scopes *scopes = scopes_of_thread;
    uint32_t number = name ? __atomic_load_n(&name->number, __ATOMIC_RELAXED) : NAME_NONE;
    if (__builtin_expect(!scopes || number == NAME_NONE, 0)) return enter_first(name, STACK_POINTER);
    uint32_t last = scopes->depth - 1; /* UINT32_MAX if none is open */
    if (last < SCOPES_KEPT && __builtin_expect(scopes->kept[last].place <= STACK_POINTER, 0))
        return enter_beside(scopes, number, STACK_POINTER);
    return push(scopes, number, STACK_POINTER);
}

EXPORT void mscope_scope_leave(mscope_scope scope) {
    struct mscope_scopes *scopes = scopes_of_thread;
    if (scopes && scope < scopes->depth) scopes->depth = scope;
}

/* Whether the calls of begin and end functions in this thread are counted. Once they are, they go on to be counted,
 * also while nothing is recorded: an end does not say which beginning it belongs to. */
static inline bool has_scopes(void) {
    return scopes_of_thread || (scopes_on() && make_scopes());
}

EXPORT void mscope_scope_begin(const char *name) {
    if (!has_scopes()) return;
    push(scopes_of_thread, note(name), STACK_POINTER);
}

EXPORT void mscope_scope_end(void) {
    struct mscope_scopes *scopes = scopes_of_thread;
    if (scopes && scopes->depth) scopes->depth--;
}

EXPORT void mscope_ignore_begin(void) {
    if (has_scopes()) scopes_of_thread->ignored++;
}

EXPORT void mscope_ignore_end(void) {
    struct mscope_scopes *scopes = scopes_of_thread;
    if (scopes && scopes->ignored) scopes->ignored--;
}

/* ---- frames of a sample ---- */

void scopes_prepare(void) {
    if (!threads_are_frames || (!scopes_of_thread && !make_scopes())) return;
    struct mscope_scopes *scopes = scopes_of_thread;
    if (scopes->asked++ >= ASKED_ALWAYS && scopes->asked % ASKED_EACH) return;
    char name[THREAD_NAME_SIZE];
    if (call_prctl(PR_GET_NAME, (uintptr_t)name) == 0) scopes->thread = note(name);
}

uint64_t scopes_make_fingerprint(const struct mscope_scopes *scopes) {
    uint32_t depth = scopes->depth < SCOPES_KEPT ? scopes->depth : SCOPES_KEPT;
    uint64_t sum = scopes->depth > SCOPES_KEPT;
    for (uint32_t i = 0; i < depth; i++)
        sum = (sum + scopes->kept[i].place * 33 + scopes->kept[i].name) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    return sum + scopes->thread;
}

static uint64_t frame_of(enum frame_kind kind, uint32_t name) {
    return (uint64_t)kind << FRAME_KIND_SHIFT | name;
}

/* Frames are moved from the outermost (the last) on, each to a higher index, so that none is overwritten before it was
 * moved. `caller` is the stack pointer of the caller of the outermost frame that has not been moved yet. The next scope
 * stands here, outside of that frame, in three cases:
 *
 *     caller ≤ place                  the frame was called by the function that entered the scope, or from within it
 *     place + WRAPPER_ROOM < low,     the scope was entered on another stack: it stands outside of all frames
 *       or place ≥ high
 *     no frame is left                a wrapper entered the scope a little below the present stack pointer, and has
 *                                     returned: the scope stands inside of all frames */
uint32_t scopes_merge(uint64_t *frames, const uint64_t *places, uint32_t count, uint64_t low, uint64_t high) {
    const struct mscope_scopes *scopes = scopes_of_thread;
    if (!scopes) return count;
    uint32_t open = scopes_are_frames && places ? scopes->depth : 0;
    uint32_t kept = open < SCOPES_KEPT ? open : SCOPES_KEPT;
    uint32_t total = count + kept + (open > kept) + threads_are_frames, at = total, next = 0;
    if (threads_are_frames) frames[--at] = frame_of(FRAME_THREAD, scopes->thread);
    uint64_t caller = UINT64_MAX; /* of the outermost frame: there is none */
    while (next < kept) {
        uint64_t place = scopes->kept[next].place;
        if (count == 0 || caller <= place || place + WRAPPER_ROOM < low || place >= high) {
            frames[--at] = frame_of(FRAME_SCOPE, scopes->kept[next++].name);
            if (next == SCOPES_KEPT && open > kept) frames[--at] = frame_of(FRAME_CUT, 0);
            continue;
        }
        caller = places[--count];
        frames[--at] = frames[count];
    }
    return total;
}
