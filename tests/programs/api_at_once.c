/* Reports of two threads, or of a thread and its signal handlers, that come at the same time. The first argument
 * chooses the case, the second is the name of the recording. Prints what was reported, as JSON. */
#include "ledger.h"

#include <malloscope.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static mscope_heap exact_heap(const char *name) {
    struct mscope_heap_options options = {.size = sizeof options, .rate = 1};
    return mscope_heap_register(name, &options);
}

static struct mscope_stats stats_now(void) {
    struct mscope_stats stats = {.size = sizeof stats};
    REQUIRE(mscope_stats(&stats) == MSCOPE_OK);
    return stats;
}

static void *place(uintptr_t number) {
    return (void *)(0x100000 + number * 64);
}

/* ---- the same free, reported by two threads at once ---- */

#define ROUNDS 100000

static mscope_heap heap;
static _Atomic long arrived;

static void meet(long times) {
    arrived++;
    while (arrived < 2 * times) {
    }
}

static void *free_in_turn(void *result) {
    for (long round = 0, times = 0; round < ROUNDS; round++) {
        meet(++times);
        for (volatile long wait = round % 8; wait; wait--) {
        }
        *(_Atomic long *)result += mscope_heap_free(heap, place(0)) == MSCOPE_OK;
        meet(++times);
        meet(++times);
    }
    return NULL;
}

static void freed_twice(void) {
    static _Atomic long mine, theirs;
    pthread_t thread;
    heap = exact_heap("twice");
    REQUIRE(pthread_create(&thread, NULL, free_in_turn, (void *)&theirs) == 0);
    for (long round = 0, times = 0; round < ROUNDS; round++) {
        mscope_heap_alloc(heap, place(0), 100);
        meet(++times);
        mine += mscope_heap_free(heap, place(0)) == MSCOPE_OK;
        meet(++times);
        meet(++times);
    }
    pthread_join(thread, NULL);
    long unknown = 0;
    for (uintptr_t i = 1; i < 1000; i++) mscope_heap_alloc(heap, place(i), 100);
    for (uintptr_t i = 1; i < 1000; i++) unknown += mscope_heap_free(heap, place(i)) != MSCOPE_OK;
    printf("{\"frees\": %ld, \"unknown\": %ld, \"live\": %.0f}\n", mine + theirs, unknown,
        stats_now().live_bytes);
}

/* ---- a signal after each instruction ---- */

#if defined(__x86_64__)

#define TRACE_FLAG  0x100
#define STEPS_BEGIN __asm__ volatile("pushfq; orl %0, (%%rsp); popfq" ::"i"(TRACE_FLAG) : "memory", "cc")
#define STEPS_END   __asm__ volatile("pushfq; andl %0, (%%rsp); popfq" ::"i"(~TRACE_FLAG) : "memory", "cc")

static void (*in_handler)(void);
static long steps;

/* The kernel switches stepping off in handlers, and on again behind them. */
static void on_step(int number) {
    (void)number;
    steps++;
    in_handler();
}

static void step_with(void (*handler)(void)) {
    struct sigaction action = {.sa_handler = on_step};
    in_handler = handler;
    sigaction(SIGTRAP, &action, NULL);
}

static void reset_it(void) {
    mscope_heap_reset(heap);
}

static void reset_in_handler(void) {
    heap = exact_heap("reset");
    mscope_heap_free(exact_heap("other"), place(1)); /* the thread is known from now on */
    step_with(reset_it);
    STEPS_BEGIN;
    mscope_heap_alloc(heap, place(0), 100);
    STEPS_END;
    mscope_heap_reset(heap);
    printf("{\"steps\": %ld, \"live\": %.0f}\n", steps, stats_now().live_bytes);
}

static void enter_one(void) {
    MSCOPE_SCOPE("in a handler");
}

static pthread_key_t later; /* than the recorder's: its destructor runs after that */

static void stop_stepping(void *unused) {
    (void)unused;
    STEPS_END;
}

static void *end_stepping(void *unused) {
    MSCOPE_SCOPE("thread");
    mscope_heap_alloc(heap, place(3), 100);
    pthread_setspecific(later, "");
    STEPS_BEGIN;
    return unused;
}

static void end_in_handler(void) {
    heap = exact_heap("end");
    pthread_t thread;
    step_with(enter_one);
    REQUIRE(pthread_key_create(&later, stop_stepping) == 0);
    REQUIRE(pthread_create(&thread, NULL, end_stepping, NULL) == 0);
    pthread_join(thread, NULL);
    printf("{\"steps\": %ld}\n", steps);
}

#endif

/* ---- a heap that is registered while the recording begins ---- */

#define HEAPS 1000
static mscope_heap many[HEAPS];

static void *register_many(void *unused) {
    for (int i = 0; i < HEAPS; i++) {
        many[i] = exact_heap("many");
        for (volatile int k = 0; k < 3000; k++) {
        }
    }
    return unused;
}

static void register_meanwhile(const char *output) {
    pthread_t thread;
    struct mscope_options options = {.size = sizeof options, .output = output};
    REQUIRE(pthread_create(&thread, NULL, register_many, NULL) == 0);
    while (!*(volatile mscope_heap *)&many[10]) {
    }
    REQUIRE(mscope_init(&options) == MSCOPE_OK && mscope_start() == MSCOPE_OK);
    pthread_join(thread, NULL);
    long taken = 0;
    for (uintptr_t i = 0; i < HEAPS; i++) taken += mscope_heap_alloc(many[i], place(i), 8) == MSCOPE_OK;
    printf("{\"taken\": %ld}\n", taken);
}

/* ---- what a forked child takes over ---- */

static int state_in_child(void) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        int state = (int)mscope_state();
        _exit(state == MSCOPE_ACTIVE || mscope_start() == MSCOPE_OK ? state : 99);
    }
    REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void fork_in_states(const char *output) {
    struct mscope_options options = {.size = sizeof options, .output = output};
    REQUIRE(mscope_init(&options) == MSCOPE_OK);
    int initialized = state_in_child();
    mscope_start();
    int active = state_in_child();
    mscope_stop();
    printf("{\"initialized\": %d, \"active\": %d, \"stopped\": %d}\n", initialized, active, state_in_child());
}

static _Atomic int asked, answer;

static void list_slowly(void *parent, mscope_visit *visit, void *visitor) {
    asked = 1;
    while (getpid() == (pid_t)(intptr_t)parent && !answer) usleep(1000);
    visit(visitor, place(0), 1000, 1, NULL);
}

static void *ask(void *unused) {
    stats_now();
    return unused;
}

static void fork_while_enumerating(void) {
    struct mscope_heap_options options = {
        .size = sizeof options, .enumerate = list_slowly, .context = (void *)(intptr_t)getpid()};
    mscope_heap_register("listed", &options);
    pthread_t thread;
    int status;
    REQUIRE(pthread_create(&thread, NULL, ask, NULL) == 0);
    while (!asked) usleep(1000);
    pid_t child = fork();
    if (child == 0) {
        _exit(stats_now().live_bytes >= 1000);
    }
    REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status));
    answer = 1;
    pthread_join(thread, NULL);
    printf("{\"seen\": %d}\n", WEXITSTATUS(status));
}

/* ---- begun while recording, ended while not ---- */

static void __attribute__((noinline)) inside(size_t size) {
    void *volatile block = malloc(size);
    (void)block;
}

static void stop_in_scope(void) {
    mscope_scope_begin("outer");
    mscope_ignore_begin();
    mscope_stop();
    mscope_scope_begin("inner");
    mscope_ignore_begin();
    mscope_ignore_end();
    mscope_scope_end();
    mscope_start();
    inside(11111); /* is ignored */
    mscope_ignore_end();
    inside(22222); /* is in the outer one */
    mscope_scope_end();
    inside(33333); /* is in none */
    printf("{}\n");
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "", *output = count > 2 ? arguments[2] : NULL;
    if (!strcmp(what, "freed_twice")) freed_twice();
#if defined(__x86_64__)
    if (!strcmp(what, "reset_in_handler")) reset_in_handler();
    if (!strcmp(what, "end_in_handler")) end_in_handler();
#endif
    if (!strcmp(what, "register_meanwhile")) register_meanwhile(output);
    if (!strcmp(what, "fork_in_states")) fork_in_states(output);
    if (!strcmp(what, "fork_while_enumerating")) fork_while_enumerating();
    if (!strcmp(what, "stop_in_scope")) stop_in_scope();
}
