/* Four threads open, call and close libraries as fast as they can, and capture from inside them. Libraries of
 * different shapes take each other's places in memory. Nothing crashes, and the stacks are right.
 *
 * Arguments: the libraries, built from test_unwind_library.c. */
#include "check.h"
#include "test_unwind.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define THREADS   4
#define COPIES    16 /* of each library, under names of their own: dlopen takes each for another */
#define ROUNDS    400
#define PATHS_MAX 256

static char paths[PATHS_MAX][64];
static int path_count;
static _Atomic unsigned captured, wrong, opened;
static bool notices; /* whether the capture is told of every dlclose */

static int callback(void *argument) {
    static __thread uint64_t low, high;
    static __thread uint64_t frames[64];
    struct unwind_registers registers;
    struct reference *reference = (struct reference *)argument;
    bool complete;
    registers_take(&registers);
    uint32_t count =
        unwind_capture(&registers, unwind_stack_bounds(registers.sp, &low, &high), frames, 64, &complete);
    reference->count = 0;
    _Unwind_Backtrace(reference_add, reference);
    bool same = complete && count == reference->count;
    for (uint32_t i = 1; same && i < count; i++) same = frames[i] == reference->frames[i];
    captured++;
    if (!same) wrong++;
    return (int)count;
}

static void *storm(void *argument) {
    unsigned seed = (unsigned)(uintptr_t)argument;
    struct reference *reference = malloc(sizeof *reference);
    for (int round = 0; round < ROUNDS; round++) {
        void *library = dlopen(paths[(unsigned)rand_r(&seed) % (unsigned)path_count], RTLD_NOW);
        if (!library) continue;
        opened++;
        int (*call)(int (*)(void *), void *, int);
        *(void **)&call = dlsym(library, "library_call");
        for (int depth = 0; depth < 4; depth++) call(callback, reference, depth);
        dlclose(library);
        if (notices) unwind_modules_changed();
    }
    free(reference);
    return NULL;
}

static void copy_file(const char *from, const char *to) {
    static char bytes[1 << 20];
    FILE *source = fopen(from, "rb"), *target = fopen(to, "wb");
    if (!CHECK(source && target)) exit(1);
    size_t size = fread(bytes, 1, sizeof bytes, source);
    CHECK(size > 0 && size < sizeof bytes);
    CHECK(fwrite(bytes, 1, size, target) == size);
    fclose(source);
    fclose(target);
}

static void run(void) {
    pthread_t thread[THREADS];
    captured = wrong = opened = 0;
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, storm, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    fprintf(stderr, "%u libraries opened, %u stacks captured, %u wrong\n", opened, captured, wrong);
    CHECK(opened == THREADS * ROUNDS);
    /* A library may be opened where the capture still knows another: until that is noticed, and when more
     * threads read the maps at once than there are snapshots, a stack may end early. */
    CHECK(wrong * 100 < captured);
}

int main(int count, char **arguments) {
    char folder[] = "/tmp/malloscope-storm-XXXXXX";
    if (!CHECK(count > 1 && mkdtemp(folder))) return check_result();
    for (int copy = 0; copy < COPIES; copy++)
        for (int i = 1; i < count && path_count < PATHS_MAX; i++) {
            snprintf(paths[path_count], sizeof paths[0], "%s/%d.so", folder, path_count);
            copy_file(arguments[i], paths[path_count++]);
        }
    unwind_start();
    notices = true;
    run();
    notices = false;
    run();
    for (int i = 0; i < path_count; i++) unlink(paths[i]);
    rmdir(folder);

    return check_result();
}
