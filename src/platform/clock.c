#include "platform/clock.h"

#include "base/nanoseconds.h"

#include <stdatomic.h>
#include <time.h>

/* From counter `ticks` at time `time` on, for `span` ticks, a tick takes `speed` / 2^32 ns. */
struct course {
    uint64_t ticks, time, speed, span;
};

/* A course is used again after so many others were made. A thread that is held up while it reads one reads garbage only
 * if it is held up for longer than that. */
#define COURSES 64

static struct {
    uint64_t start;
    uint64_t first_ticks, first_time;
    _Atomic(const struct course *) current;
    _Atomic uint32_t busy;
    uint32_t made;
    struct course course[COURSES];
} state = {.current = &state.course[0]};

#define SECOND         UINT64_C(1000000000)
#define MEASURE_LEAST  (SECOND / 500) /* ns before the counter's speed is known well enough */
#define QUESTION_TICKS 30000 /* a question that took longer was interrupted: not good for measuring */

static uint64_t ask(void) {
    return nanoseconds_now(CLOCK_MONOTONIC) - state.start;
}

#if defined(__x86_64__)

static uint64_t ticks_now(void) {
    return __builtin_ia32_rdtsc();
}

static void measure(uint64_t ticks, uint64_t time) {
    uint64_t elapsed_ticks = ticks - state.first_ticks, elapsed = time - state.first_time;
    if (elapsed < MEASURE_LEAST || elapsed_ticks > UINT64_MAX / 2) return;
    /* Acquire, and release at the end: `made` and the courses are changed by one at a time. */
    if (atomic_exchange_explicit(&state.busy, 1, memory_order_acquire)) return;
    uint64_t span = elapsed_ticks / 8, second = (uint64_t)((__uint128_t)elapsed_ticks * SECOND / elapsed);
    struct course *course = &state.course[++state.made % COURSES];
    *course = (struct course){
        .ticks = ticks,
        .time = time,
        .speed = (uint64_t)(((__uint128_t)elapsed << 32) / elapsed_ticks),
        .span = span < second ? span : second,
    };
    /* Release: goes with the acquire in clock_now; a course is read as it was made. */
    atomic_store_explicit(&state.current, course, memory_order_release);
    atomic_store_explicit(&state.busy, 0, memory_order_release);
}

static __attribute__((noinline)) uint64_t ask_and_measure(void) {
    uint64_t before = ticks_now(), time = ask(), after = ticks_now();
    if (after - before < QUESTION_TICKS) measure(before + (after - before) / 2, time);
    return time;
}

uint64_t clock_now(void) {
    const struct course *course = atomic_load_explicit(&state.current, memory_order_acquire);
    uint64_t passed = ticks_now() - course->ticks;
    if (__builtin_expect(passed < course->span, 1))
        return course->time + (uint64_t)(((__uint128_t)passed * course->speed) >> 32);
    return ask_and_measure();
}

#else

static uint64_t ticks_now(void) {
    return 0;
}
uint64_t clock_now(void) {
    return ask();
}

#endif

void clock_start(uint64_t start) {
    state.start = start;
    state.first_ticks = ticks_now();
    state.first_time = ask();
}

void clock_after_fork(void) {
    atomic_store_explicit(&state.busy, 0, memory_order_relaxed); /* there is one thread */
}
