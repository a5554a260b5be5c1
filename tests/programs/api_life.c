/* The recorder's life as the program commands it. Linked with the library (MSCOPE_LINKED), without a preload
 * and without an environment. Arguments: what to do, and the name of the recording. What goes wrong ends the
 * program with status 99 and says which line. */
#include "ledger.h"

#include <malloscope.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *output;

static struct mscope_options options_of(uint64_t rate) {
    struct mscope_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.output = output;
    options.rate = rate;
    return options;
}

static mscope_result ask_stats(void) {
    struct mscope_stats stats = {.size = sizeof stats};
    return mscope_stats(&stats);
}

/* Every call that this state does not allow is refused, and leaves the state. */
static void expect_only(mscope_state_is state, int init, int start, int stop, int stats) {
    struct mscope_options options = options_of(1);
    REQUIRE(mscope_state() == state);
    if (!init) REQUIRE(mscope_init(&options) == MSCOPE_BAD_STATE && mscope_init(NULL) == MSCOPE_BAD_STATE);
    if (!start) REQUIRE(mscope_start() == MSCOPE_BAD_STATE);
    if (!stop) REQUIRE(mscope_stop() == MSCOPE_BAD_STATE);
    if (state == MSCOPE_UNINITIALIZED || state == MSCOPE_TERMINATED)
        REQUIRE(mscope_shutdown() == MSCOPE_BAD_STATE);
    REQUIRE(ask_stats() == (stats ? MSCOPE_OK : MSCOPE_BAD_STATE));
    REQUIRE(mscope_state() == state);
}

static void *kept[100];

__attribute__((noinline)) static void *take(size_t size) {
    void *block = malloc(size);
    ESCAPE(block);
    return block;
}

/* Works in every state: what is reported then is recorded or not, and nothing else happens. Where it is not,
 * `unknown` is what a free of it returns. */
static void use_everything(mscope_heap heap, mscope_result unknown) {
    static char memory[4096];
    MSCOPE_SCOPE("scope");
    MSCOPE_TYPE(&memory[0], "type");
    mscope_scope_begin("by name");
    mscope_ignore_begin();
    mscope_ignore_end();
    mscope_scope_end();
    REQUIRE(mscope_heap_alloc(heap, memory, 10) == MSCOPE_OK);
    REQUIRE(mscope_heap_alloc_many(heap, memory + 64, 20, 2) == MSCOPE_OK);
    REQUIRE(mscope_heap_free(heap, memory) == unknown);
    REQUIRE(mscope_heap_resize(heap, NULL, memory, 30) == MSCOPE_OK);
    REQUIRE(mscope_heap_reset(heap) == MSCOPE_OK);
    void *block = malloc(50);
    mscope_heap_backing(heap, block, 50);
    free(block);
}

static void all_states(void) {
    mscope_heap heap = mscope_heap_register("early", NULL);
    REQUIRE(heap);
    use_everything(heap, MSCOPE_OK);
    expect_only(MSCOPE_UNINITIALIZED, 1, 0, 0, 0);

    struct mscope_options options = options_of(1);
    REQUIRE(mscope_init(&options) == MSCOPE_OK);
    expect_only(MSCOPE_INITIALIZED, 0, 1, 0, 1);
    use_everything(heap, MSCOPE_UNKNOWN);
    kept[0] = take(10001);

    REQUIRE(mscope_start() == MSCOPE_OK);
    expect_only(MSCOPE_ACTIVE, 0, 0, 1, 1);
    kept[1] = take(10002);
    kept[2] = take(10003);
    use_everything(heap, MSCOPE_OK);

    REQUIRE(mscope_stop() == MSCOPE_OK);
    expect_only(MSCOPE_STOPPED, 0, 1, 0, 1);
    kept[3] = take(10004);
    use_everything(heap, MSCOPE_UNKNOWN);
    free(kept[0]);
    free(kept[1]); /* is noticed */
    free(kept[3]);

    REQUIRE(mscope_start() == MSCOPE_OK);
    expect_only(MSCOPE_ACTIVE, 0, 0, 1, 1);
    kept[4] = take(10005);

    REQUIRE(mscope_shutdown() == MSCOPE_OK);
    expect_only(MSCOPE_TERMINATED, 0, 0, 0, 0);
    use_everything(heap, MSCOPE_OK);
    REQUIRE(mscope_heap_register("late", NULL) == 0);
    kept[5] = take(10006);
    for (int i = 2; i < 6; i++)
        if (i != 3) free(kept[i]);
}

/* From INITIALIZED, and from STOPPED. */
static void end_early(int from_stopped) {
    struct mscope_options options = options_of(1);
    REQUIRE(mscope_init(&options) == MSCOPE_OK);
    if (from_stopped) REQUIRE(mscope_start() == MSCOPE_OK && mscope_stop() == MSCOPE_OK);
    REQUIRE(mscope_shutdown() == MSCOPE_OK);
    expect_only(MSCOPE_TERMINATED, 0, 0, 0, 0);
}

static void try_again(void) {
    struct mscope_options options = options_of(1);
    options.output = "/nowhere/at/all/x.mscope";
    for (int i = 0; i < 3; i++) {
        errno = 0;
        REQUIRE(mscope_init(&options) == MSCOPE_FAILED && errno == ENOENT);
        REQUIRE(mscope_state() == MSCOPE_UNINITIALIZED);
        free(take(5000));
    }
    options.output = output;
    REQUIRE(mscope_init(&options) == MSCOPE_OK && mscope_start() == MSCOPE_OK);
    kept[0] = take(10001);
}

/* Options that make no sense, and structs of other versions of the header. */
static void odd_options(void) {
    struct mscope_options options = options_of(1);
    for (size_t size = 0; size < sizeof(size_t); size++) {
        options.size = size;
        REQUIRE(mscope_init(&options) == MSCOPE_BAD_ARGUMENT);
    }
    options = options_of(1);
    options.depth = 1;
    REQUIRE(mscope_init(&options) == MSCOPE_BAD_ARGUMENT);
    options.depth = 1000000;
    REQUIRE(mscope_init(&options) == MSCOPE_BAD_ARGUMENT);
    options = options_of(1);
    options.stacks = 12;
    REQUIRE(mscope_init(&options) == MSCOPE_BAD_ARGUMENT);
    options = options_of(1);
    char name[10 << 10];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    options.output = name;
    REQUIRE(mscope_init(&options) == MSCOPE_FAILED && errno == ENAMETOOLONG);
    REQUIRE(mscope_state() == MSCOPE_UNINITIALIZED);
    struct {
        struct mscope_options options;
        char later[1000];
    } of_the_future;
    memset(&of_the_future, 0xff, sizeof of_the_future);
    of_the_future.options = options_of(1);
    of_the_future.options.size = sizeof of_the_future;
    REQUIRE(mscope_init(&of_the_future.options) == MSCOPE_OK && mscope_start() == MSCOPE_OK);
    kept[0] = take(10001);
    struct {
        struct mscope_stats stats;
        char later[1000];
    } large;
    memset(&large, 0x5a, sizeof large);
    large.stats.size = sizeof large;
    REQUIRE(mscope_stats(&large.stats) == MSCOPE_OK && large.stats.live_bytes == 10001);
    for (size_t i = 0; i < sizeof large.later; i++) REQUIRE(large.later[i] == 0x5a);
    struct mscope_stats few;
    memset(&few, 0x5a, sizeof few);
    few.size = offsetof(struct mscope_stats, live_objects);
    REQUIRE(mscope_stats(&few) == MSCOPE_OK && few.live_bytes == 10001);
    double untouched;
    memset(&untouched, 0x5a, sizeof untouched);
    REQUIRE(memcmp(&few.live_objects, &untouched, sizeof untouched) == 0);
}

/* Only the output: what it does not know of is as by default. */
static void short_options(void) {
    struct mscope_options options = options_of(1);
    options.size = offsetof(struct mscope_options, rate);
    REQUIRE(mscope_init(&options) == MSCOPE_OK && mscope_start() == MSCOPE_OK);
    struct mscope_stats stats = {.size = sizeof stats};
    REQUIRE(mscope_stats(&stats) == MSCOPE_OK && stats.rate == 512 << 10);
}

/* ---- threads that were there before ---- */

#define WORKERS 8

static pthread_barrier_t barrier;

static void *work(void *unused) {
    for (int i = 0; i < 1000; i++) free(malloc(1000)); /* it knows by now that nothing is recorded */
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier); /* the recorder is there */
    for (int i = 0; i < 1000; i++) free(malloc(1000));
    for (int i = 0; i < 100; i++) {
        MSCOPE_SCOPE("worker");
        take(10001);
    }
    return unused;
}

static void late_init(void) {
    pthread_t threads[WORKERS];
    pthread_barrier_init(&barrier, NULL, WORKERS + 1);
    for (int i = 0; i < WORKERS; i++) pthread_create(&threads[i], NULL, work, NULL);
    pthread_barrier_wait(&barrier);
    struct mscope_options options = options_of(1);
    REQUIRE(mscope_init(&options) == MSCOPE_OK && mscope_start() == MSCOPE_OK);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
}

/* Of many that try at once, one succeeds each time. */

static long inits, starts, stops, shutdowns;

static void *command(void *unused) {
    struct mscope_options options = options_of(1);
    pthread_barrier_wait(&barrier);
    if (mscope_init(&options) == MSCOPE_OK) ledger_add(&inits, 1);
    while (mscope_state() == MSCOPE_UNINITIALIZED) usleep(10);
    for (int i = 0; i < 2000; i++) {
        if (mscope_start() == MSCOPE_OK) ledger_add(&starts, 1);
        free(take(100));
        if (mscope_stop() == MSCOPE_OK) ledger_add(&stops, 1);
    }
    pthread_barrier_wait(&barrier);
    if (mscope_shutdown() == MSCOPE_OK) ledger_add(&shutdowns, 1);
    free(take(100));
    return unused;
}

static void all_at_once(void) {
    pthread_t threads[WORKERS];
    pthread_barrier_init(&barrier, NULL, WORKERS);
    for (int i = 0; i < WORKERS; i++) pthread_create(&threads[i], NULL, command, NULL);
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    REQUIRE(inits == 1 && shutdowns == 1 && mscope_state() == MSCOPE_TERMINATED);
    REQUIRE(starts >= 1 && (starts == stops || starts == stops + 1));
}

/* While others allocate and free as fast as they can. */

static int finished;

static void *churn(void *unused) {
    void *blocks[64] = {NULL};
    for (unsigned i = 0; !__atomic_load_n(&finished, __ATOMIC_RELAXED); i++) {
        MSCOPE_SCOPE("churn");
        free(blocks[i % 64]);
        blocks[i % 64] = malloc(16 + i % 500);
    }
    for (int i = 0; i < 64; i++) free(blocks[i]);
    return unused;
}

static void under_load(uint64_t rate) {
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++) pthread_create(&threads[i], NULL, churn, NULL);
    struct mscope_options options = options_of(rate);
    usleep(10000);
    REQUIRE(mscope_init(&options) == MSCOPE_OK);
    for (int i = 0; i < 50; i++) {
        REQUIRE(mscope_start() == MSCOPE_OK);
        usleep(1000);
        REQUIRE(mscope_stop() == MSCOPE_OK);
        usleep(500);
    }
    __atomic_store_n(&finished, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    struct mscope_stats stats = {.size = sizeof stats};
    REQUIRE(mscope_stats(&stats) == MSCOPE_OK && stats.samples > 0);
}

static void shutdown_under_load(void) {
    pthread_t threads[WORKERS];
    struct mscope_options options = options_of(1);
    REQUIRE(mscope_init(&options) == MSCOPE_OK && mscope_start() == MSCOPE_OK);
    for (int i = 0; i < WORKERS; i++) pthread_create(&threads[i], NULL, churn, NULL);
    usleep(50000);
    REQUIRE(mscope_shutdown() == MSCOPE_OK);
    usleep(50000);
    __atomic_store_n(&finished, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
}

/* Under `malloscope run`, not linked. */
static void under_run(void) {
    expect_only(MSCOPE_ACTIVE, 0, 0, 1, 1);
    REQUIRE(mscope_stop() == MSCOPE_OK);
    expect_only(MSCOPE_STOPPED, 0, 1, 0, 1);
    take(10001);
    REQUIRE(mscope_start() == MSCOPE_OK);
    take(10002);
}

int main(int argument_count, char **arguments) {
    const char *what = argument_count > 1 ? arguments[1] : "";
    output = argument_count > 2 ? arguments[2] : "unused.mscope";
    if (strcmp(what, "states") == 0) all_states();
    if (strcmp(what, "end_initialized") == 0) end_early(0);
    if (strcmp(what, "end_stopped") == 0) end_early(1);
    if (strcmp(what, "again") == 0) try_again();
    if (strcmp(what, "options") == 0) odd_options();
    if (strcmp(what, "short") == 0) short_options();
    if (strcmp(what, "late") == 0) late_init();
    if (strcmp(what, "race") == 0) all_at_once();
    if (strcmp(what, "load_exact") == 0) under_load(1);
    if (strcmp(what, "load_sampled") == 0) under_load(1000);
    if (strcmp(what, "shutdown_load") == 0) shutdown_under_load();
    if (strcmp(what, "run") == 0) under_run();
    return 0;
}
