#define MSCOPE_LINKED
#include "record/api/scopes.h"

#include "core/name_table.h"
#include "malloscope.h"
#include "platform/caller_state.h"
#include "platform/pages.h"
#include "platform/system.h"
#include "record/intercept/export.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"

#include <sys/prctl.h>

/* That of the caller, at its call. */
#define STACK_POINTER ((uintptr_t)__builtin_dwarf_cfa())

#define WRAPPER_ROOM                                                                                         \
    4096u /* bytes of stack that the callers of mscope_scope_begin in other languages take                   \
           */

#define ASKED_ALWAYS 8u  /* a thread is often named a little after it began */
#define ASKED_EACH   64u /* and seldom after that */

__thread struct mscope_scopes *scopes_of_thread;
EXPORT intptr_t mscope_scopes_on;
static bool threads_are_frames, scopes_are_frames;

/* Relaxed: a switch. Scopes that are entered a little before or after it are as good as outside. */
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
    if (!recorder_is_recording() || !recorder_knows_thread()) return NULL;
    KEEP_CALLER_STATE;
    void *memory = pages_take(sizeof(struct mscope_scopes));
    /* A signal handler may have been faster, and its scopes are closed again: one of the two is enough. */
    if (memory) scopes_of_thread = memory;
    return scopes_of_thread;
}

void scopes_free(void) {
    struct mscope_scopes *scopes = scopes_of_thread;
    scopes_of_thread =
        NULL; /* first: a signal handler may come in between, to which the fence is addressed */
    atomic_signal_fence(memory_order_seq_cst);
    if (scopes) pages_give(scopes, sizeof *scopes);
}

/* ---- entering and leaving ---- */

static inline mscope_scope push(struct mscope_scopes *scopes, uint32_t name, uint64_t place) {
    uint32_t depth = scopes->depth;
    if (__builtin_expect(depth < SCOPES_KEPT, 1)) return mscope_scope_push(scopes, depth, name, place);
    if (depth < MSCOPE_SCOPE_NONE - 1) scopes->depth++;
    return depth;
}

static __attribute__((noinline, cold)) uint32_t note(const char *name) {
    if (!name || !recorder_is_recording()) return NAME_NONE;
    KEEP_CALLER_STATE;
    return name_table_note(&recorder.recording, name);
}

static __attribute__((noinline, cold)) mscope_scope enter_first(struct mscope_name *name, uint64_t place) {
    if (!name || (!scopes_of_thread && !make_scopes())) return MSCOPE_SCOPE_NONE;
    uint32_t number = note(name->name);
    /* Relaxed: a number that name_table_note has published; all threads find the same. */
    __atomic_store_n(&name->number, number, __ATOMIC_RELAXED);
    return push(scopes_of_thread, number, place);
}

/* The last scope was not entered further out than this: by the same function, in a coroutine, or by one that
 * is gone without leaving it, by a longjmp. What is here already is not entered again, so that those which
 * were jumped out of do not pile up; there is nothing to leave then. */
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
    uint32_t last = scopes->depth - 1; /* of those that are kept, if there is one */
    if (last < SCOPES_KEPT && __builtin_expect(scopes->kept[last].place <= STACK_POINTER, 0))
        return enter_beside(scopes, number, STACK_POINTER);
    return push(scopes, number, STACK_POINTER);
}

EXPORT void mscope_scope_leave(mscope_scope scope) {
    struct mscope_scopes *scopes = scopes_of_thread;
    if (scopes && scope < scopes->depth) scopes->depth = scope;
}

/* Whether the calling thread's beginnings are noted. Once they are they go on to be, also while nothing is
 * recorded: an end says nothing but that it is one. */
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

/* ---- what a sample takes ---- */

void scopes_prepare(void) {
    if (!threads_are_frames || (!scopes_of_thread && !make_scopes())) return;
    struct mscope_scopes *scopes = scopes_of_thread;
    if (scopes->asked++ >= ASKED_ALWAYS && scopes->asked % ASKED_EACH) return;
    char name[16];
    if (system_calls_allowed() && prctl(PR_GET_NAME, name) == 0) scopes->thread = note(name);
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

/* From the root on, so that frames only move away from the leaf, and those that were moved are not read
 * again. A frame is inside a scope if the stack pointer of its caller was at the scope's place, or lower.
 * What entered a scope a little below the stack pointer, a wrapper or a constructor, has returned: all frames
 * are outside of that. A scope that was entered on another stack than this is outside of all. */
uint32_t scopes_merge(uint64_t *frames, const uint64_t *places, uint32_t count, uint64_t low, uint64_t high) {
    const struct mscope_scopes *scopes = scopes_of_thread;
    if (!scopes) return count;
    uint32_t open = scopes_are_frames && places ? scopes->depth : 0;
    uint32_t kept = open < SCOPES_KEPT ? open : SCOPES_KEPT;
    uint32_t total = count + kept + (open > kept) + threads_are_frames, at = total, next = 0;
    if (threads_are_frames) frames[--at] = frame_of(FRAME_THREAD, scopes->thread);
    uint64_t caller = UINT64_MAX; /* stack pointer of the caller of frame `count` - 1 */
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
