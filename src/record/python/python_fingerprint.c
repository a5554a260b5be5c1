/* The fingerprint of the calling thread's Python frames. In exact mode every allocation asks for it.
 *
 * It is a hash of the addresses of the instructions that the frames are at. An instruction's address tells the code
 * object, too, as long as no code object dies; so the number of deaths is part of the hash.
 *
 * If there are few frames, all of them are hashed each time. If there are many, the frames of the last time are
 * remembered, each with the fingerprint of itself and its callers:
 *
 *     remembered   main ─ rank ─ key ─ less
 *     now          main ─ rank ─ key              key is at another instruction, less has returned
 *                  same   same   changed          so the fingerprint of rank is used, and that of key made anew
 *
 * A frame that is as it was says nothing about its callers: another call may have got the memory of an earlier one.
 * So all remembered frames have to be compared. But their addresses are known beforehand, so that the processor can
 * compare many at once, where following the frames from one to the next would wait for memory at each step. */
#include "platform/pages.h"
#include "record/python/python_internals.h"

#include <stdatomic.h>

#define FRAMES_FEW        24u   /* up to so many, nothing is remembered; a multiple of 4 */
#define FRAMES_REMEMBERED 8191u /* deeper stacks are hashed frame by frame */
#define INDEX_SIZE        4096u
#define PREFETCH_DISTANCE 24 /* frames between those that are compared and those that are prefetched */

struct remembered_frame {
    const void *frame;
    const void *instruction; /* that it was at */
};

/* The frames of the thread's last stack, outermost first. Number 0 stands for the end of the stack: its frame is
 * NULL, as is the `previous` of the outermost frame. */
struct remembered_frames {
    uint64_t deaths; /* python_code_deaths when the fingerprints were made */
    uint32_t count;  /* of frames, not counting number 0 */
    bool is_busy;    /* a signal handler that finds this true has interrupted the thread in here */
    uint16_t number_of[INDEX_SIZE]; /* by a hash of a frame's address: the number that it may have */
    struct remembered_frame frame[FRAMES_REMEMBERED + 1];
    /* Of each frame and its callers. Apart from the frames, so that comparing these reads as few lines as it can. */
    uint64_t fingerprint[FRAMES_REMEMBERED + 1];
    const void *added[FRAMES_REMEMBERED]; /* frames that are to be remembered, innermost first */
};

static __thread struct remembered_frames *own_frames;

static uint64_t mix(uint64_t fingerprint, uint64_t at) {
    return (fingerprint ^ at) * UINT64_C(0x9e3779b97f4a7c15);
}

/* The fingerprint of no frames. Multiplied, so that a difference of deaths does not look like one of addresses. */
static uint64_t fingerprint_start(uint64_t deaths) {
    return deaths * UINT64_C(0xc2b2ae3d27d4eb4f);
}

/* ---- frame by frame ---- */

/* Up to 3.10: a frame has its code object, and the number of the instruction. */
static uint64_t hash_frame_objects(const void *frame, uint64_t fingerprint) {
    const struct layout *layout = &python.layout;
    for (int i = 0; frame && i < FRAMES_WALKED; i++) {
        uint64_t instruction = (uint32_t)number_at(frame, layout->frame.instruction);
        fingerprint =
            mix(fingerprint, (uintptr_t)pointer_at(frame, layout->frame.code) + (instruction << 40));
        frame = pointer_at(frame, layout->frame.previous);
    }
    return fingerprint;
}

/* From 3.11 on: a frame has the address of the instruction. Hashes at most `most` frames, a multiple of four; `*frame`
 * is the first that is left then, or NULL. */
static inline uint64_t hash_frames(const void **frame, uint32_t most, uint64_t fingerprint) {
    uint16_t previous = python.layout.frame.previous, instruction = python.layout.frame.instruction;
    const void *at = *frame;
    for (; at && most; most -= 4)
#pragma GCC unroll 4
        for (int i = 0; i < 4 && at; i++) {
            fingerprint = mix(fingerprint, (uintptr_t)pointer_at(at, instruction));
            at = pointer_at(at, previous);
        }
    *frame = at;
    return fingerprint;
}

/* ---- by the frames of the last time ---- */

static uint16_t *index_of(struct remembered_frames *frames, const void *frame) {
    return &frames->number_of[(uintptr_t)frame / 16 % INDEX_SIZE];
}

/* The number under which a frame at this address is remembered; 0: none. */
static uint32_t find_frame(struct remembered_frames *frames, const void *frame) {
    uint32_t number = *index_of(frames, frame);
    return number <= frames->count && frames->frame[number].frame == frame ? number : 0;
}

/* Whether the frame is at the instruction that it was at, and has the caller that it had. */
static inline bool is_same(const struct remembered_frame *frame, uint16_t instruction, uint16_t previous) {
    return pointer_at(frame->frame, instruction) == frame->instruction &&
           pointer_at(frame->frame, previous) == frame[-1].frame;
}
static inline bool are_four_same(
    const struct remembered_frame *frame, uint16_t instruction, uint16_t previous) {
    return is_same(frame, instruction, previous) && is_same(frame - 1, instruction, previous) &&
           is_same(frame - 2, instruction, previous) && is_same(frame - 3, instruction, previous);
}

/* Goes from frame number `at` on to its callers, for as long as four at once are the same. Returns the number of the
 * first frame that is to be looked at by itself; 0: the end of the stack. */
static inline uint32_t skip_same(
    const struct remembered_frames *frames, uint32_t at, uint16_t instruction, uint16_t previous) {
    const struct remembered_frame *frame = &frames->frame[at], *first = frames->frame;
    while (frame - first >= PREFETCH_DISTANCE + 4 && are_four_same(frame, instruction, previous)) {
        /* The frames of a deep recursion do not fit into the first-level cache. */
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            __builtin_prefetch((const char *)frame[-PREFETCH_DISTANCE - i].frame + instruction);
        frame -= 4;
    }
    while (frame - first > 4 && are_four_same(frame, instruction, previous)) frame -= 4;
    return (uint32_t)(frame - first);
}

/* Whether the callers of frame `number`, which is on the stack, are the remembered ones. A remembered frame is read
 * only after the frame that it called has named it as its caller: then it is on the stack, and its memory is there.
 *
 * True: `*ret_changed` is the outermost of these frames that is at another instruction; `number` + 1 if none is.
 * False: the frames from the one that has another caller on are forgotten. */
static bool has_same_callers(struct remembered_frames *frames, uint32_t number, uint32_t *ret_changed) {
    uint16_t previous = python.layout.frame.previous, instruction = python.layout.frame.instruction;
    *ret_changed = number + 1;
    for (uint32_t at = skip_same(frames, number, instruction, previous); at;
         at = skip_same(frames, at - 1, instruction, previous)) {
        const struct remembered_frame *frame = &frames->frame[at];
        if (pointer_at(frame->frame, instruction) != frame->instruction) *ret_changed = at;
        if (pointer_at(frame->frame, previous) != frame[-1].frame) {
            frames->count = at - 1;
            return false;
        }
    }
    return true;
}

/* Makes the fingerprint of frame `number` from that of its caller. */
static void hash_frame(struct remembered_frames *frames, uint32_t number) {
    struct remembered_frame *frame = &frames->frame[number];
    frame->instruction = pointer_at(frame->frame, python.layout.frame.instruction);
    frames->fingerprint[number] = mix(frames->fingerprint[number - 1], (uintptr_t)frame->instruction);
}

/* The fingerprint of `frame` and its callers, all of which are remembered afterwards. 0: there are too many. */
static uint64_t hash_and_remember(struct remembered_frames *frames, const void *frame) {
    uint32_t added = 0, number = 0, changed = 1;
    for (; frame; frame = pointer_at(frame, python.layout.frame.previous)) {
        number = find_frame(frames, frame);
        if (number && has_same_callers(frames, number, &changed)) break;
        number = 0, changed = 1;
        if (added == FRAMES_REMEMBERED) return 0;
        frames->added[added++] = frame;
    }
    if (number + added > FRAMES_REMEMBERED) return 0;
    for (uint32_t i = changed; i <= number; i++) hash_frame(frames, i);
    while (added) {
        const void *next = frames->added[--added];
        frames->frame[++number].frame = next;
        *index_of(frames, next) = (uint16_t)number;
        hash_frame(frames, number);
    }
    frames->count = number;
    return frames->fingerprint[number];
}

static __attribute__((noinline, cold)) struct remembered_frames *make_frames(void) {
    own_frames = pages_take(sizeof(struct remembered_frames));
    return own_frames;
}

void python_fingerprint_free(void) {
    struct remembered_frames *former = own_frames;
    own_frames = NULL; /* first: a signal handler that comes now must not use the memory */
    atomic_signal_fence(memory_order_seq_cst);
    if (former) pages_give(former, sizeof *former);
}

/* ---- the choice between the two ---- */

static __attribute__((noinline)) uint64_t fingerprint_many(const void *top, uint64_t deaths) {
    struct remembered_frames *frames = own_frames ? own_frames : make_frames();
    uint64_t fingerprint = 0, start = fingerprint_start(deaths);
    if (frames && !frames->is_busy) {
        frames->is_busy = true;
        atomic_signal_fence(memory_order_seq_cst);
        if (frames->deaths != deaths) frames->count = 0;
        frames->deaths = deaths;
        frames->fingerprint[0] = start;
        fingerprint = hash_and_remember(frames, top);
        if (!fingerprint) frames->count = 0;
        atomic_signal_fence(memory_order_seq_cst);
        frames->is_busy = false;
    }
    return (fingerprint ? fingerprint : hash_frames(&top, FRAMES_WALKED, start)) | 1;
}

/* The two ways come to different fingerprints: one hashes from the innermost frame on, the other from the outermost.
 * So the number of frames alone decides which way is taken, whatever the thread did before: up to FRAMES_FEW the
 * first, beyond that the second. */
static uint64_t fingerprint_few(const void *top, uint64_t deaths) {
    const void *rest = top;
    uint64_t fingerprint = hash_frames(&rest, FRAMES_FEW, fingerprint_start(deaths));
    return __builtin_expect(rest != NULL, 0) ? fingerprint_many(top, deaths) : fingerprint | 1;
}

/* Where the last stack had many frames, this one most likely has, too. */
static __attribute__((noinline)) uint64_t fingerprint_as_many(const void *top, uint64_t deaths) {
    uint64_t fingerprint = fingerprint_many(top, deaths);
    return own_frames->count > FRAMES_FEW ? fingerprint : fingerprint_few(top, deaths);
}

/* Not inlined into recorder_sample, most of whose callers run no Python. */
__attribute__((noinline)) uint64_t python_fingerprint(bool is_locked) {
    const void *thread = is_locked ? python.interpreter.thread_state() : python_walk_thread();
    if (!thread) return 0;
    const void *top = python_walk_top(thread);
    uint64_t deaths = atomic_load_explicit(&python_code_deaths, memory_order_relaxed);
    if (__builtin_expect(python.layout.shape < SHAPE_ENTRIES, 0))
        return hash_frame_objects(top, fingerprint_start(deaths)) | 1;
    bool were_many = own_frames && own_frames->count > FRAMES_FEW;
    return were_many ? fingerprint_as_many(top, deaths) : fingerprint_few(top, deaths);
}
