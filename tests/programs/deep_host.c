/* deep_host LIBRARY...: opens libraries with RTLD_DEEPBIND (deep_library.c) which free blocks of this program; the
 * further ones in a thread each. Frees blocks of the libraries. Prints how many of its blocks were freed.
 *
 * With LATE the program is linked with the recorder, and begins to record (into the file RECORDING) when a library is
 * open already. */
#include "deep_library.h"
#include "ledger.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define PER_THREAD 2000
#define ROUNDS     5

static __thread void *blocks[PER_THREAD];
static __thread unsigned made, taken;
static _Atomic unsigned freed;

void *deep_take(void);

void *deep_take(void) {
    if (taken == made) return NULL;
    freed++;
    return blocks[taken++];
}

static void make_blocks(void) {
    made = taken = 0;
    while (made < PER_THREAD) {
        void *block = malloc(DEEP_LEAST + made % 900); /* @site handed */
        REQUIRE(block);
        memset(block, 1, DEEP_LEAST);
        blocks[made++] = block;
    }
}

static void *use_library(void *path) {
    for (int round = 0; round < ROUNDS; round++) {
        make_blocks(); /* before the library is there: in exact mode all of these are marked */
        void *library = dlopen(path, (round % 2 ? RTLD_NOW : RTLD_LAZY) | RTLD_DEEPBIND | RTLD_LOCAL);
        if (!library) fprintf(stderr, "%s\n", dlerror());
        REQUIRE(library);
        unsigned (*release)(unsigned) = (unsigned (*)(unsigned))dlsym(library, "deep_release");
        void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(library, "deep_allocate");
        release(PER_THREAD / 2);
        for (int i = 0; i < 100; i++) free(allocate(200));
        dlclose(library);
        for (void *block; (block = deep_take());) free(block);
    }
    return NULL;
}

#ifdef LATE
#include "malloscope.h"

static void begin(const char *path) {
    struct mscope_options options = {.size = sizeof options, .output = getenv("RECORDING"), .rate = 1};
    REQUIRE(dlopen(path, RTLD_NOW | RTLD_DEEPBIND));
    REQUIRE(mscope_init(&options) == MSCOPE_OK && mscope_start() == MSCOPE_OK);
}
#else
static void begin(const char *path) {
    (void)path;
}
#endif

int main(int argc, char **argv) {
    pthread_t threads[16];
    int count = argc - 2 < 16 ? argc - 2 : 16;
    begin(argv[1]);
    use_library(argv[1]);
    for (int i = 0; i < count; i++) REQUIRE(pthread_create(&threads[i], NULL, use_library, argv[2 + i]) == 0);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    printf("{\"freed\": %u}\n", freed);
    return 0;
}
