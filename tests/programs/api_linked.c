/* A program that commands its recorder, if there is one, and prints what came of it as JSON. The argument is
 * the name of the recording. */
#include <malloscope.h>

#include <stdio.h>
#include <stdlib.h>

static const char *const states[] = {"UNINITIALIZED", "INITIALIZED", "ACTIVE", "STOPPED", "TERMINATED"};
static const char *const results[] = {"OK", "ABSENT", "BAD_STATE", "BAD_ARGUMENT", "NO_HEAP"};

static mscope_heap heap;
static char arena[4096];

__attribute__((noinline)) static void *make_buffer(void) {
    void *volatile buffer = malloc(1000); /* @site buffer */
    return buffer;
}

__attribute__((noinline)) static mscope_result fill_arena(void) {
    mscope_result result = MSCOPE_OK;
    for (int i = 0; i < 10; i++) result = mscope_heap_alloc(heap, arena + i * 64, 64);
    return result;
}

__attribute__((noinline)) static void work(void *volatile *kept) {
    MSCOPE_SCOPE("phase one");
    kept[0] = make_buffer();
    kept[1] = make_buffer();
    free(make_buffer());
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IONBF, 0);
    void *volatile before = malloc(111);
    heap = mscope_heap_register("arena", NULL);
    struct mscope_options options = {0};
    options.size = sizeof options;
    options.output = count > 1 ? arguments[1] : "never.mscope";
    options.rate = 1;

    mscope_state_is state[5] = {mscope_state()};
    mscope_result init = mscope_init(&options);
    state[1] = mscope_state();
    mscope_result start = mscope_start();
    state[2] = mscope_state();
    void *volatile kept[2];
    work(kept);
    mscope_result report = fill_arena();
    struct mscope_stats stats = {0};
    stats.size = sizeof stats;
    mscope_stats(&stats);
    mscope_result stop = mscope_stop();
    state[3] = mscope_state();
    void *volatile after = malloc(222);
    mscope_result shutdown = mscope_shutdown();
    state[4] = mscope_state();

    printf("{\"state\": [");
    for (int i = 0; i < 5; i++) printf("%s\"%s\"", i ? ", " : "", states[state[i]]);
    printf("], \"results\": {\"init\": \"%s\", \"start\": \"%s\", \"stop\": \"%s\", \"shutdown\": \"%s\"}",
        results[-init], results[-start], results[-stop], results[-shutdown]);
    printf(", \"heap\": %u, \"report\": \"%s\", \"stats\": {\"live_bytes\": %.0f}}\n", heap, results[-report],
        stats.live_bytes);
    free(before);
    free(kept[0]);
    free(kept[1]);
    free(after);
    return 0;
}
