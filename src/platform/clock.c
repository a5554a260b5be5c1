#include "platform/clock.h"

#include "base/dynamic_section.h"
#include "base/nanoseconds.h"
#include "platform/system.h"

#include <stdatomic.h>
#include <sys/auxv.h>

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

/* ---- the kernel's clock ---- */

#if defined(__x86_64__)
#define VDSO_NAME "__vdso_clock_gettime"
#else
#define VDSO_NAME "__kernel_clock_gettime"
#endif

typedef int get_time(clockid_t clock, struct timespec *ret_time);

static int time_by_call(clockid_t clock, struct timespec *ret_time) {
    return (int)system_call(SYS_clock_gettime, (uint64_t)clock, (uint64_t)ret_time, 0, 0, 0, 0);
}

/* The vDSO's function, or the system call. libc's clock_gettime is not used: a preloaded library may have another
 * idea of the time. */
static get_time *find_clock(void) {
    struct link_map vdso;
    uint64_t base = getauxval(AT_SYSINFO_EHDR);
    if (!base || !dynamic_section_at(base, &vdso)) return time_by_call;
    const ElfW(Sym) *symbol = dynamic_section_find(&vdso, VDSO_NAME);
    return symbol ? (get_time *)(vdso.l_addr + symbol->st_value) : time_by_call;
}

uint64_t clock_kernel(clockid_t clock) {
    static _Atomic(get_time *) found;
    /* Relaxed: all threads find the same function, and it was there before any of them. */
    get_time *get = atomic_load_explicit(&found, memory_order_relaxed);
    if (!get) atomic_store_explicit(&found, get = find_clock(), memory_order_relaxed);
    struct timespec time = {0};
    if (get(clock, &time) != 0) time_by_call(clock, &time);
    return nanoseconds_of(time);
}

/* ---- the time since the start ---- */

static uint64_t ask(void) {
    return clock_kernel(CLOCK_MONOTONIC) - state.start;
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
