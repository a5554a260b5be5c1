#define MSCOPE_LINKED
#include "hook/scopes.h"

#include "core/names.h"
#include "core/unnoticed.h"
#include "hook/hooks.h"
#include "hook/recorder.h"
#include "hook/state.h"
#include "malloscope.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#define ASKED_ALWAYS 8u  /* a thread is often named a little after it began */
#define ASKED_EACH   64u /* and seldom after that */

__thread struct scopes *hook_scopes;
EXPORT volatile uint32_t mscope_scopes_on;
static bool threads_are_frames, scopes_are_frames;

void scopes_switch(bool on) {
    mscope_scopes_on = on;
}

void scopes_choose(bool threads, bool scopes) {
    threads_are_frames = threads;
    scopes_are_frames = scopes;
}

static __attribute__((noinline, cold)) struct scopes *make_scopes(void) {
    if (!is_recording() || !recorder_knows_thread()) return NULL;
    UNNOTICED;
    void *memory =
        mmap(NULL, sizeof(struct scopes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* A signal handler may have been faster, and its scopes are closed again: one of the two is enough. */
    if (memory != MAP_FAILED) hook_scopes = memory;
    return hook_scopes;
}

void scopes_free(void) {
    if (hook_scopes) munmap(hook_scopes, sizeof *hook_scopes);
    hook_scopes = NULL;
}

/* ---- entering and leaving ---- */

/* Once before the depth changes, for a handler that comes after that, and once after it, because one that
 * came before has written here too. */
static inline void put(struct scopes *scopes, uint32_t depth, uint32_t name) {
    scopes->name[depth] = name;
    scopes->signature[depth + 1] = (scopes->signature[depth] + name) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline mscope_scope push(struct scopes *scopes, uint32_t name) {
    uint32_t depth = scopes->depth;
    if (__builtin_expect(depth >= SCOPES_KEPT, 0)) {
        scopes->signature[SCOPES_KEPT + 1] = ~scopes->signature[SCOPES_KEPT];
        if (depth < MSCOPE_SCOPE_NONE - 1) scopes->depth++;
        return depth;
    }
    put(scopes, depth, name);
    scopes->depth = depth + 1;
    put(scopes, depth, name);
    return depth;
}

static __attribute__((noinline, cold)) uint32_t note(const char *name) {
    if (!name || !is_recording()) return NAME_NONE;
    UNNOTICED;
    return name_note(&recorder.recording, name);
}

static __attribute__((noinline, cold)) mscope_scope enter_first(struct mscope_name *name) {
    if (!name || (!hook_scopes && !make_scopes())) return MSCOPE_SCOPE_NONE;
    uint32_t number = note(name->name);
    __atomic_store_n(&name->number, number, __ATOMIC_RELAXED);
    return push(hook_scopes, number);
}

EXPORT mscope_scope mscope_scope_enter(struct mscope_name *name) {
    if (!mscope_scopes_on) return MSCOPE_SCOPE_NONE;
    struct scopes *scopes = hook_scopes;
    uint32_t number = name ? __atomic_load_n(&name->number, __ATOMIC_RELAXED) : NAME_NONE;
    if (__builtin_expect(!scopes || number == NAME_NONE, 0)) return enter_first(name);
    return push(scopes, number);
}

EXPORT void mscope_scope_leave(mscope_scope scope) {
    struct scopes *scopes = hook_scopes;
    if (scopes && scope < scopes->depth) scopes->depth = scope;
}

EXPORT void mscope_scope_begin(const char *name) {
    if (!mscope_scopes_on || (!hook_scopes && !make_scopes())) return;
    push(hook_scopes, note(name));
}

EXPORT void mscope_scope_end(void) {
    struct scopes *scopes = hook_scopes;
    if (scopes && scopes->depth) scopes->depth--;
}

EXPORT void mscope_ignore_begin(void) {
    if (mscope_scopes_on && (hook_scopes || make_scopes())) hook_scopes->ignored++;
}

EXPORT void mscope_ignore_end(void) {
    struct scopes *scopes = hook_scopes;
    if (scopes && scopes->ignored) scopes->ignored--;
}

/* ---- what a sample takes ---- */

void scopes_prepare(void) {
    if (!threads_are_frames || (!hook_scopes && !make_scopes())) return;
    struct scopes *scopes = hook_scopes;
    if (scopes->asked++ >= ASKED_ALWAYS && scopes->asked % ASKED_EACH) return;
    char name[16];
    if (prctl(PR_GET_NAME, name) == 0) scopes->thread = note(name);
}

uint32_t scopes_frames(uint64_t *frames) {
    const struct scopes *scopes = hook_scopes;
    uint32_t count = 0;
    if (!scopes) return 0;
    uint32_t depth = scopes_are_frames ? scopes->depth : 0;
    if (depth > SCOPES_KEPT) {
        frames[count++] = (uint64_t)FRAME_CUT << FRAME_KIND_SHIFT;
        depth = SCOPES_KEPT;
    }
    while (depth-- > 0) frames[count++] = (uint64_t)FRAME_SCOPE << FRAME_KIND_SHIFT | scopes->name[depth];
    if (threads_are_frames) frames[count++] = (uint64_t)FRAME_THREAD << FRAME_KIND_SHIFT | scopes->thread;
    return count;
}
