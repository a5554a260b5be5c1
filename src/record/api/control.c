/* Recording as the program controls it: init, start, stop, shutdown (malloscope.h). */
#define MSCOPE_LINKED
#include "base/limits.h"
#include "malloscope.h"
#include "platform/counter.h"
#include "record/api/own_heaps.h"
#include "record/api/scopes.h"
#include "record/intercept/export.h"
#include "record/intercept/got_takeover.h"
#include "record/life/finish.h"
#include "record/life/options.h"
#include "record/life/start.h"
#include "record/python/python.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"
#include "record/sample/work.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

EXPORT const char *mscope_result_text(mscope_result result) {
    switch (result) {
    case MSCOPE_OK:
        return "done";
    case MSCOPE_ABSENT:
        return "the recorder is not part of this process";
    case MSCOPE_BAD_STATE:
        return "this cannot be done in the recorder's present state";
    case MSCOPE_BAD_ARGUMENT:
        return "an argument makes no sense";
    case MSCOPE_NO_HEAP:
        return "this heap was never registered";
    case MSCOPE_UNKNOWN:
        return "no block that was reported is at this address";
    case MSCOPE_FULL:
        return "there is no room for more";
    case MSCOPE_FAILED:
        return "the system refused; errno says why";
    }
    return "not a result of malloscope";
}

EXPORT mscope_state_is mscope_state(void) {
    start_by_environment(); /* unless that is done */
    switch (atomic_load_explicit(&recorder.stage, memory_order_acquire)) {
    case RECORDING:
        if (counter_load(&recorder.recording.header->active)) return MSCOPE_ACTIVE;
        return recorder.was_started ? MSCOPE_STOPPED : MSCOPE_INITIALIZED;
    case OFF:
        return MSCOPE_TERMINATED;
    default:
        return MSCOPE_UNINITIALIZED;
    }
}

/* ---- init ---- */

#define HAS(options, field)                                                                                  \
    ((options)->size >= offsetof(struct mscope_options, field) + sizeof((options)->field) && (options)->field)

/* Puts the options that the program has given in the place of those from the environment. False: one makes no sense. */
static bool take_options(struct options *options, const struct mscope_options *given) {
    if (!given) return true;
    if (given->size < sizeof given->size) return false;
    if (HAS(given, output)) options->output = given->output;
    if (HAS(given, rate)) options->rate = given->rate;
    if (HAS(given, depth)) options->depth = given->depth;
    if (HAS(given, max_bytes)) options->size_max = given->max_bytes;
    if (HAS(given, replace)) options->replace = true;
    if (options->depth < DEPTH_LEAST || options->depth > DEPTH_MOST) return false;
    if (!HAS(given, stacks)) return true;
    uint32_t stacks = given->stacks & ~MSCOPE_STACKS_THREADS;
    options->thread_frames = given->stacks & MSCOPE_STACKS_THREADS;
    options->stacks = stacks == MSCOPE_STACKS_NATIVE   ? STACKS_NATIVE
                      : stacks == MSCOPE_STACKS_SCOPES ? STACKS_SCOPES
                                                       : STACKS_BOTH;
    return stacks <= MSCOPE_STACKS_SCOPES;
}

EXPORT mscope_result mscope_init(const struct mscope_options *given) {
    struct options options;
    if (mscope_state() != MSCOPE_UNINITIALIZED) return MSCOPE_BAD_STATE;
    if (!options_read(&options)) return MSCOPE_BAD_STATE;
    if (!take_options(&options, given)) return MSCOPE_BAD_ARGUMENT;
    options.is_root = true;
    int r = start_by_program(&options);
    if (r == 0) return MSCOPE_OK;
    if (r == -EALREADY) return MSCOPE_BAD_STATE;
    errno = -r;
    return MSCOPE_FAILED;
}

/* ---- start, stop, shutdown ----
 *
 * If several threads try the same at once, one of them succeeds; the others get MSCOPE_BAD_STATE. */

static mscope_result set_active(uint64_t active) {
    uint64_t other = !active;
    RECORDER_WORKS;
    if (!recorder_is_ready()) return MSCOPE_BAD_STATE;
    /* The exchange decides which of several threads succeeds. It is rare, so the strongest order will do. */
    if (!atomic_compare_exchange_strong(&recorder.recording.header->active, &other, active))
        return MSCOPE_BAD_STATE;
    if (!active) atomic_fetch_or(&recorder.recording.header->flags, RECORDING_PAUSED);
    scopes_switch(active);
    return MSCOPE_OK;
}

EXPORT mscope_result mscope_start(void) {
    mscope_state_is state = mscope_state();
    if (state == MSCOPE_INITIALIZED || state == MSCOPE_STOPPED) got_takeover_begin();
    mscope_result result = set_active(1);
    if (result == MSCOPE_OK) recorder.was_started = true;
    return result;
}

EXPORT mscope_result mscope_stop(void) {
    return set_active(0);
}

EXPORT mscope_result mscope_shutdown(void) {
    int stage = RECORDING;
    RECORDER_WORKS;
    if (!recorder_is_ready()) return MSCOPE_BAD_STATE;
    own_heaps_enumerate();
    if (!atomic_compare_exchange_strong(&recorder.stage, &stage, STARTING)) return MSCOPE_BAD_STATE;
    scopes_switch(false);
    got_takeover_end();
    python_end();
    finish_recording();
    /* In this order, and with release: a thread that finds the owner word 0 then finds the stage OFF, and does not take
     * the process for a forked child (recorder_begin). */
    atomic_store_explicit(&recorder.stage, OFF, memory_order_release);
    atomic_store_explicit(recorder.owner, 0, memory_order_release);
    return MSCOPE_OK;
}
