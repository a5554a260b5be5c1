/* System calls without libc's wrappers: they leave errno alone and work before libc is set up. */
#ifndef MALLOSCOPE_PLATFORM_SYSTEM_H
#define MALLOSCOPE_PLATFORM_SYSTEM_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

/* A program may forbid itself system calls (seccomp) and be killed at the first one it has not foreseen. From
 * then on the recorder makes none: it goes on in the memory it has. */
extern _Atomic bool system_calls_are_forbidden;

static inline bool system_calls_allowed(void) {
    /* Relaxed: nothing is read on the strength of it. */
    return !atomic_load_explicit(&system_calls_are_forbidden, memory_order_relaxed);
}

/* Returns the result or a negative error number. */
static inline long system_call_always(
    long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
#if defined(__x86_64__)
    long result;
    register uint64_t r10 __asm__("r10") = d;
    register uint64_t r8 __asm__("r8") = e;
    register uint64_t r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register uint64_t x0 __asm__("x0") = a;
    register uint64_t x1 __asm__("x1") = b;
    register uint64_t x2 __asm__("x2") = c;
    register uint64_t x3 __asm__("x3") = d;
    register uint64_t x4 __asm__("x4") = e;
    register uint64_t x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return (long)x0;
#else
#error "stack capture is written for x86-64 and aarch64"
#endif
}

/* Where system calls are forbidden, the answer is that of a bad address. */
static inline long system_call(
    long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
    return system_calls_allowed() ? system_call_always(number, a, b, c, d, e, f) : -EFAULT;
}

/* The same once more when a signal has interrupted it; not for ever, since the program's own signals may come
 * faster than the call can be made. */
#define INTERRUPTIONS_MOST 100

static inline long system_call_again(
    long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
    long result = -EINTR;
    for (int i = 0; result == -EINTR && i < INTERRUPTIONS_MOST; i++)
        result = system_call(number, a, b, c, d, e, f);
    return result;
}

static inline uint64_t thread_pointer(void) {
    uint64_t pointer;
#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
#else
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
    return pointer;
}

/* Whether the thread may be in a handler on the stack that it has for handlers; that may be anywhere, in an
 * array of main's too. */
__attribute__((noinline, cold)) bool system_on_signal_stack(void);

#endif
