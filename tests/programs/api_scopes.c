/* Scopes and types. The first argument says which; every allocation of interest has a size of its own, by
 * which the tests find it. Compiled as C and as C++. */
#include "ledger.h"

#include <malloscope.h>

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

/* A block of a size that tells it from all others. */
NOINLINE static void *take(size_t size) {
    void *block = malloc(size);
    ESCAPE(block);
    return block;
}

/* ---- nesting ---- */

NOINLINE static void nest(int depth, int deepest) {
    char name[32];
    snprintf(name, sizeof name, "level %d", depth);
    mscope_scope_begin(name);
    if (depth == deepest)
        take(10000 + (size_t)deepest);
    else
        nest(depth + 1, deepest);
    mscope_scope_end();
}

static void nesting(void) {
    int depths[] = {1, 2, 127, 128, 129, 1000};
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) nest(1, depths[i]);
    take(20000); /* all are closed */
}

static void unbalanced(void) {
    for (int i = 0; i < 10; i++) mscope_scope_end();
    mscope_scope_begin("one");
    take(10001);
    mscope_scope_end();
    for (int i = 0; i < 10; i++) mscope_scope_end();
    {
        MSCOPE_SCOPE("outer");
        mscope_scope_begin("never ended");
        take(10002);
    }
    take(10003); /* closed with the one around it */
    {
        MSCOPE_SCOPE("ended twice");
        mscope_scope_end();
        take(10004);
    }
    take(10005);
}

/* ---- among the frames ---- */

NOINLINE static void leaf(size_t size) {
    take(size);
    __asm__ volatile("");
}

NOINLINE static void handle(size_t size) {
    MSCOPE_SCOPE("handling");
    leaf(size);
    __asm__ volatile("");
}

NOINLINE static void recurse(int depth) {
    MSCOPE_SCOPE("recursion");
    if (depth)
        recurse(depth - 1);
    else
        leaf(10002);
    __asm__ volatile("");
}

static inline __attribute__((always_inline)) void inlined(size_t size) {
    MSCOPE_SCOPE("in an inlined function");
    leaf(size);
}

NOINLINE static void outer_of_inlined(void) {
    MSCOPE_SCOPE("around it");
    inlined(10003);
    __asm__ volatile("");
}

NOINLINE static void begin_in_wrapper(const char *name) {
    mscope_scope_begin(name);
    __asm__ volatile("");
}

NOINLINE static void uses_wrapper(void) {
    begin_in_wrapper("by a wrapper");
    take(10004);
    mscope_scope_end();
    __asm__ volatile("");
}

static ucontext_t of_main, of_coroutine;

static void coroutine(void) {
    MSCOPE_SCOPE("in the coroutine");
    leaf(10005);
    swapcontext(&of_coroutine, &of_main);
    leaf(10006);
}

NOINLINE static void with_coroutine(void) {
    MSCOPE_SCOPE("around the coroutine");
    size_t size = 64 << 10;
    void *stack = malloc(size);
    getcontext(&of_coroutine);
    of_coroutine.uc_stack.ss_sp = stack;
    of_coroutine.uc_stack.ss_size = size;
    of_coroutine.uc_link = &of_main;
    makecontext(&of_coroutine, coroutine, 0);
    swapcontext(&of_main, &of_coroutine);
    swapcontext(&of_main, &of_coroutine);
    leaf(10007);
    __asm__ volatile("");
}

static void places(void) {
    handle(10001);
    recurse(3);
    outer_of_inlined();
    uses_wrapper();
    with_coroutine();
    leaf(10008);
}

/* ---- ways out of a scope ---- */

static jmp_buf target;

NOINLINE static void jump_out(void) {
    MSCOPE_SCOPE("jumped out of");
    take(10001);
    longjmp(target, 1);
}

NOINLINE static void jumps(void) {
    MSCOPE_SCOPE("around the jump");
    static volatile int count;
    for (count = 0; count < 1000; count++)
        if (setjmp(target) == 0) jump_out();
    __asm__ volatile("");
}

static void leave_by_jump(void) {
    jumps();
    take(10002);
    handle(10003);
}

#ifdef __cplusplus
NOINLINE static void throws(int depth) {
    MSCOPE_SCOPE("thrown out of");
    take(10001);
    if (depth == 0) throw depth;
    throws(depth - 1);
    __asm__ volatile("");
}

static void leave_by_exception(void) {
    MSCOPE_SCOPE("catches");
    try {
        throws(10);
    } catch (int) {
        take(10002);
    }
}
#endif

/* ---- threads ---- */

static void *end_inside(void *unused) {
    mscope_scope_begin("the thread's last");
    take(10001);
    pthread_exit(unused);
}

static void *plain_thread(void *unused) {
    take(10002);
    return unused;
}

static void *named_thread(void *unused) {
    prctl(PR_SET_NAME, "first name");
    take(10003);
    prctl(PR_SET_NAME, "second name");
    for (int i = 0; i < 200; i++) take(10004);
    return unused;
}

static void run_thread(void *(*function)(void *)) {
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, function, NULL) == 0);
    pthread_join(thread, NULL);
}

static void threads(void) {
    MSCOPE_SCOPE("of the main thread");
    for (int i = 0; i < 20; i++) {
        run_thread(end_inside);
        run_thread(plain_thread);
    }
    run_thread(named_thread);
}

/* ---- signals ---- */

static void handler(int signal) {
    (void)signal;
    MSCOPE_SCOPE("handler");
    mscope_ignore_begin();
    mscope_ignore_end();
}

static int interrupted;

static void *interrupt(void *given) {
    pthread_t thread = *(pthread_t *)given;
    while (!__atomic_load_n(&interrupted, __ATOMIC_RELAXED)) {
        pthread_kill(thread, SIGUSR1);
        usleep(20);
    }
    return NULL;
}

static void signals(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(SIGUSR1, &action, NULL);
    pthread_t self = pthread_self(), other;
    REQUIRE(pthread_create(&other, NULL, interrupt, &self) == 0);
    for (int i = 0; i < 200000; i++) {
        MSCOPE_SCOPE("interrupted");
        MSCOPE_SCOPE("inner");
        if (i % 100 == 0) free(take(10001));
    }
    __atomic_store_n(&interrupted, 1, __ATOMIC_RELAXED);
    pthread_join(other, NULL);
    take(10002);
}

/* ---- the recorder's life ---- */

static void start_inside(void) {
    REQUIRE(mscope_stop() == MSCOPE_OK);
    MSCOPE_SCOPE("before the start");
    mscope_scope_begin("also before");
    take(10001);
    REQUIRE(mscope_start() == MSCOPE_OK);
    take(10002); /* in no scope that is known */
    mscope_scope_end();
    {
        MSCOPE_SCOPE("after the start");
        take(10003);
        REQUIRE(mscope_stop() == MSCOPE_OK);
        MSCOPE_SCOPE("while stopped");
        take(10004);
        REQUIRE(mscope_start() == MSCOPE_OK);
        take(10005); /* still in "after the start" */
        REQUIRE(mscope_stop() == MSCOPE_OK);
    } /* left while stopped */
    REQUIRE(mscope_start() == MSCOPE_OK);
    take(10006);
}

static void ignoring(void) {
    take(10001);
    {
        MSCOPE_IGNORE();
        take(10002);
        {
            MSCOPE_IGNORE();
            take(10003);
        }
        take(10004);
        mscope_ignore_begin();
        mscope_ignore_end();
        take(10005);
    }
    mscope_ignore_end(); /* too many */
    void *ignored, *kept = take(10006);
    {
        MSCOPE_IGNORE();
        ignored = take(10007);
        free(kept); /* frees are noticed all the same */
    }
    free(ignored);
}

static void in_child(void) {
    MSCOPE_SCOPE("before the fork");
    pid_t child = fork();
    if (child == 0) {
        MSCOPE_SCOPE("new in the child");
        take(10001);
        mscope_scope_begin("by its name");
        take(10002);
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    take(10003);
}

/* ---- names ---- */

/* The library's names are gone with it; the second time it is loaded elsewhere. */
static void from_library(const char *path) {
    void *hold = NULL;
    for (int i = 0; i < 2; i++) {
        void *library = dlopen(path, RTLD_NOW);
        if (!library) fprintf(stderr, "%s\n", dlerror());
        REQUIRE(library);
        void (*enter)(void (*)(size_t), size_t);
        *(void **)&enter = dlsym(library, "in_library");
        REQUIRE(enter);
        enter(leaf, 10001 + (size_t)i);
        REQUIRE(dlclose(library) == 0);
        if (!hold) hold = malloc(1 << 20);
    }
    leaf(10003);
}

static void many_names(void) {
    for (int i = 0; i < 100000; i++) {
        char name[32];
        snprintf(name, sizeof name, "name %d", i);
        mscope_scope_begin(name);
        if (i == 0 || i == 30000 || i == 99999) take(10000 + (size_t)i);
        mscope_scope_end();
    }
    mscope_scope_begin("name 0"); /* known ones are still found */
    take(10001);
    mscope_scope_end();
}

/* ---- types ---- */

struct thing {
    char bytes[10001];
};

static void types(void) {
    struct thing *thing = MSCOPE_TYPE((struct thing *)take(sizeof(struct thing)), "struct thing");
    ESCAPE(thing);
    void *block = take(10002);
    REQUIRE(mscope_type_named(block, "first") == MSCOPE_OK);
    REQUIRE(mscope_type_named(block, "second") == MSCOPE_OK);
    REQUIRE(mscope_type_named(block, "second") == MSCOPE_OK);
    block = take(10003);
    REQUIRE(mscope_type_named(block, "before realloc") == MSCOPE_OK);
    block = realloc(block, 20003);
    ESCAPE(block);
    block = take(10004);
    REQUIRE(mscope_type_named(block, "freed") == MSCOPE_OK);
    free(block);
    for (int i = 0; i < 100; i++) {
        static struct mscope_name name = {"each", 0};
        REQUIRE(mscope_type(take(100), &name) == MSCOPE_OK);
    }
    void *page = aligned_alloc(4096, 8192); /* begins a page: it carries no mark */
    REQUIRE(mscope_type_named(page, "page") == MSCOPE_OK);
    mscope_type_named((char *)page + 64, "inside"); /* no block begins there */
}

int main(int argument_count, char **arguments) {
    const char *what = argument_count > 1 ? arguments[1] : "";
    if (strcmp(what, "nesting") == 0) nesting();
    if (strcmp(what, "unbalanced") == 0) unbalanced();
    if (strcmp(what, "places") == 0) places();
    if (strcmp(what, "jump") == 0) leave_by_jump();
#ifdef __cplusplus
    if (strcmp(what, "exception") == 0) leave_by_exception();
#endif
    if (strcmp(what, "threads") == 0) threads();
    if (strcmp(what, "signals") == 0) signals();
    if (strcmp(what, "start_inside") == 0) start_inside();
    if (strcmp(what, "ignoring") == 0) ignoring();
    if (strcmp(what, "child") == 0) in_child();
    if (strcmp(what, "library") == 0) from_library(arguments[2]);
    if (strcmp(what, "names") == 0) many_names();
    if (strcmp(what, "types") == 0) types();
    return 0;
}
