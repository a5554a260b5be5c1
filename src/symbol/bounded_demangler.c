#include "symbol/bounded_demangler.h"

#include "base/memory.h"

#include <libiberty/demangle.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO)
#define HARMLESS_SIZE                                                                                        \
    100 /* bytes of a mangled name: each doubling takes 6, so that a shorter one cannot take long */
#define PATIENCE 100000000u /* ns of processor time for one name */
#define PATIENCE_ALL                                                                                         \
    2000000000u /* for all names together that were given up: after that, long ones are not tried */
#define SIGNAL SIGVTALRM

static atomic_size_t given_up;
static _Atomic uint64_t wasted; /* ns */

/* How an attempt ended. */
enum outcome { NOT_MANGLED, DONE, TOO_LONG, TOO_SLOW };

/* One attempt. */
struct attempt {
    sigjmp_buf end;
    volatile sig_atomic_t is_timed; /* the timer may end it */
    volatile enum outcome outcome;
    size_t size;
    char text[DEMANGLED_SIZE_MOST];
};

static _Thread_local struct attempt *current;

static void stop(struct attempt *attempt, enum outcome outcome) {
    attempt->outcome = outcome;
    siglongjmp(attempt->end, 1);
}

/* Takes text from libiberty, whose functions hold nothing but their own stack while they print C++, and for Rust no
 * more than a few bytes. So they can be left by a jump: from here, and for C++ also from the handler of the timer. */
static void take_text(const char *text, size_t length, void *context) {
    struct attempt *attempt = context;
    if (length == 0) return; /* then libiberty may give no text at all */
    if (length > DEMANGLED_SIZE_MOST - attempt->size) stop(attempt, TOO_LONG);
    memcpy(attempt->text + attempt->size, text, length);
    attempt->size += length;
}

static void take_signal(int signal) {
    (void)signal;
    if (current && current->is_timed) stop(current, TOO_SLOW);
}

static void install_handler(void) {
    struct sigaction action = {.sa_handler = take_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGNAL, &action, NULL);
}

/* A timer that counts the processor time of this thread, and whose signal goes to this thread. */
static bool make_timer(timer_t *ret_timer) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install_handler);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGNAL};
    event._sigev_un._tid = gettid();
    return timer_create(CLOCK_THREAD_CPUTIME_ID, &event, ret_timer) == 0;
}

typedef int demangle_function(const char *mangled, int options, demangle_callbackref callback, void *context);

/* `timer`: stops it after PATIENCE; NULL: nothing does. */
static void demangle(
    struct attempt *attempt, const char *mangled, demangle_function *function, const timer_t *timer) {
    const struct itimerspec patience = {.it_value.tv_nsec = PATIENCE};
    attempt->size = 0;
    attempt->outcome = NOT_MANGLED;
    if (sigsetjmp(attempt->end, 1) == 0) {
        if (timer) {
            attempt->is_timed = true;
            timer_settime(*timer, 0, &patience, NULL);
        }
        int done = function(mangled, OPTIONS, take_text, attempt);
        attempt->is_timed = false;
        if (done) attempt->outcome = DONE;
    }
    attempt->is_timed = false; /* the handler leaves it alone from here on */
}

/* C++, whose demangler may take long without printing anything. */
static void demangle_timed(struct attempt *attempt, const char *mangled) {
    timer_t timer;
    bool has_timer = make_timer(&timer);
    current = attempt;
    if (wasted < PATIENCE_ALL)
        demangle(attempt, mangled, cplus_demangle_v3_callback, has_timer ? &timer : NULL);
    else
        attempt->outcome = TOO_SLOW;
    current = NULL;
    if (has_timer) timer_delete(timer);
}

char *bounded_demangler_name(const char *mangled) {
    struct attempt attempt;
    attempt.is_timed = false;
    demangle(&attempt, mangled, rust_demangle_callback, NULL); /* prints text at each step */
    if (attempt.outcome == NOT_MANGLED) {
        if (strlen(mangled) <= HARMLESS_SIZE)
            demangle(&attempt, mangled, cplus_demangle_v3_callback, NULL);
        else
            demangle_timed(&attempt, mangled);
    }
    if (attempt.outcome >= TOO_LONG) given_up++;
    if (attempt.outcome == TOO_SLOW && wasted < PATIENCE_ALL) wasted += PATIENCE;
    return attempt.outcome == DONE ? memory_copy_text_part(attempt.text, attempt.size) : NULL;
}

size_t bounded_demangler_given_up(void) {
    return given_up;
}
