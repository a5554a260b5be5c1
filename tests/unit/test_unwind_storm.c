/* Four threads open, call and close libraries as fast as they can, and capture from inside them. Libraries of
 * different shapes take each other's places in memory. Nothing crashes, and the stacks are right.
 *
 * Then the same with libraries whose unwind information is damaged, from registers and through stacks that
 * are damaged at times too: stacks may be anything then, but nothing crashes and no capture takes long.
 *
 * Arguments: the libraries, built from test_unwind_library.c. */
#include "check.h"
#include "test_unwind.h"

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/module_table.h"
#include "core/recording.h"
#include "platform/maps.h"
#include "platform/safe_read.h"

#define THREADS   4
#define COPIES    16 /* of each library, under names of their own: dlopen takes each for another */
#define ROUNDS    REPEAT(400)
#define PATHS_MAX 256

static char paths[PATHS_MAX][64];
static ino_t inodes[PATHS_MAX];
static int path_count, shapes; /* a library and its copies are `shapes` places apart */
static _Atomic unsigned captured, wrong, opened, misnamed, confused;
static bool notices;              /* whether the capture is told of every dlclose */
static __thread unsigned current; /* which library is being called */

/* The number of a library is its place in `paths`. */
static uint32_t note(const struct mapped_code *code) {
    for (uint32_t i = 0; i < PATHS_MAX; i++)
        if (inodes[i] == code->line->inode && code->base && !code->permanent) return i;
    return MODULE_BY_ADDRESS;
}

/* The frame as an address again. A library's is told from its number and from where the library is now. */
static uint64_t address_of(uint64_t word, uint64_t address) {
    if (word >> FRAME_KIND_SHIFT != FRAME_MODULE) return word;
    unsigned named = (unsigned)(word >> FRAME_MODULE_SHIFT & FRAME_MODULE_MASK);
    if (named != current) misnamed++;
    if (named % (unsigned)shapes != current % (unsigned)shapes) confused++;
    return (word ^ address) & (PAGE_SIZE_MIN - 1) ? word : address;
}

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
    for (uint32_t i = 1; same && i < count; i++)
        same = address_of(frames[i], reference->frames[i]) == reference->frames[i];
    captured++;
    if (!same) wrong++;
    return (int)count;
}

/* ---- Where everything may be damaged ---- */

#define STACK_COPIED (8 * 1024)
#define READS_STACK  __attribute__((no_sanitize("address")))
#define LONGEST      5.0 /* seconds: of four threads on one busy processor, three may have to wait */

static _Atomic uint64_t longest_nanoseconds, reached_start;

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Mostly something that a walk would believe. */
static uint64_t damaged_word(uint64_t word, unsigned *seed) {
    switch (rand_r(seed) % 5) {
    case 0:
        return (uint64_t)rand_r(seed) << 32 | (uint64_t)rand_r(seed);
    case 1:
        return word + (uint64_t)(rand_r(seed) % 512) * 8 - 2048;
    case 2:
        return word ^ UINT64_C(1) << rand_r(seed) % 64;
    case 3:
        return 0;
    default:
        return word;
    }
}

/* A copy of the stack from sp on, with what points into it moved along and a few words changed. */
static READS_STACK __attribute__((noinline)) void damage_stack(
    uint64_t *copy, struct unwind_registers *registers, unsigned *seed) {
    uint64_t from = registers->sp, to = (uint64_t)copy, *word = (uint64_t *)registers;
    for (unsigned i = 0; i < STACK_COPIED / 8; i++) {
        copy[i] = ((const uint64_t *)from)[i];
        if (copy[i] - from < STACK_COPIED) copy[i] += to - from;
    }
    for (unsigned i = 0; i < sizeof *registers / 8; i++)
        if (word[i] - from < STACK_COPIED) word[i] += to - from;
    for (int changes = rand_r(seed) % 4; changes > 0; changes--) {
        uint64_t *changed = &copy[rand_r(seed) % (STACK_COPIED / 8)];
        *changed = damaged_word(*changed, seed);
    }
}

static int damaged_callback(void *argument) {
    static __thread uint64_t low, high, frames[64], copy[STACK_COPIED / 8];
    unsigned *seed = argument;
    struct unwind_registers registers;
    bool complete;
    registers_take(&registers);
    struct unwind_bounds bounds = unwind_stack_bounds(registers.sp, &low, &high);
    if (rand_r(seed) % 2 && registers.sp + STACK_COPIED <= high) {
        damage_stack(copy, &registers, seed);
        bounds.low = bounds.proven = (uint64_t)copy;
        bounds.high = bounds.low + sizeof copy;
        if (rand_r(seed) % 2) bounds.proven = bounds.high;
    }
    for (int changes = rand_r(seed) % 3; changes > 0; changes--) {
        uint64_t *changed = (uint64_t *)&registers + rand_r(seed) % (sizeof registers / 8);
        *changed = damaged_word(*changed, seed);
    }
    uint64_t begin = nanoseconds();
    uint32_t count = unwind_capture(&registers, bounds, frames, 64, &complete);
    uint64_t took = nanoseconds() - begin, longest = longest_nanoseconds;
    while (took > longest && !atomic_compare_exchange_weak(&longest_nanoseconds, &longest, took)) {
    }
    bool sound = count <= 64 &&
                 (count == 0 || frames[0] == registers.pc || frames[0] >> FRAME_KIND_SHIFT == FRAME_MODULE);
    for (uint32_t i = 0; i < count && i < 64; i++)
        sound &= frames[i] >> 48 == 0 || frames[i] >> FRAME_KIND_SHIFT == FRAME_CUT ||
                 frames[i] >> FRAME_KIND_SHIFT == FRAME_MODULE;
    captured++;
    reached_start += complete;
    if (!sound) wrong++;
    return (int)count;
}

/* Changes bytes of the unwind information of a library that nobody has opened yet. */
static void damage_file(const char *path, unsigned *seed) {
    static uint8_t bytes[1 << 20];
    FILE *file = fopen(path, "r+b");
    if (!CHECK(file)) exit(1);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)bytes;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(bytes + elf->e_phoff), *unwind = NULL, *loaded = NULL;
    for (unsigned i = 0; i < elf->e_phnum; i++)
        if (segments[i].p_type == PT_GNU_EH_FRAME) unwind = &segments[i];
    for (unsigned i = 0; unwind && i < elf->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && unwind->p_offset - segments[i].p_offset < segments[i].p_filesz)
            loaded = &segments[i];
    /* The table of contents, and behind it all of .eh_frame. */
    if (!CHECK(loaded && loaded->p_offset + loaded->p_filesz <= size)) exit(1);
    size_t first = unwind->p_offset, length = loaded->p_offset + loaded->p_filesz - first;
    for (int changes = 1 + rand_r(seed) % 12; changes > 0; changes--)
        bytes[first + (size_t)rand_r(seed) % length] = (uint8_t)rand_r(seed);
    rewind(file);
    CHECK(fwrite(bytes, 1, size, file) == size);
    fclose(file);
}

/* ---- The storm ---- */

static int (*callback_used)(void *) = callback;

static void *storm(void *argument) {
    unsigned seed = (unsigned)(uintptr_t)argument, damage_seed = seed;
    struct reference *reference = malloc(sizeof *reference);
    void *given = callback_used == callback ? (void *)reference : &damage_seed;
    for (int round = 0; round < ROUNDS; round++) {
        current = (unsigned)rand_r(&seed) % (unsigned)path_count;
        void *library = dlopen(paths[current], RTLD_NOW);
        if (!library) continue;
        opened++;
        int (*call)(int (*)(void *), void *, int);
        *(void **)&call = dlsym(library, "library_call");
        for (int depth = 0; depth < 4; depth++) call(callback_used, given, depth);
        uint64_t begun = notices ? unwind_closing_begin() : 0;
        dlclose(library);
        if (notices) unwind_closing_end(begun, true);
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
    captured = wrong = opened = misnamed = confused = 0;
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, storm, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    fprintf(stderr,
        "%u libraries opened, %u stacks captured, %u wrong, %u frames misnamed, %u of another shape\n",
        opened, captured, wrong, misnamed, confused);
    CHECK(opened == THREADS * ROUNDS);
}

static void run_intact(bool noticed) {
    notices = noticed;
    run();
    /* A library may be opened where the capture still knows another: until that is noticed, and when more
     * threads read the maps at once than there are snapshots, a stack may end early. */
    CHECK(wrong * 100 < captured);
    /* A copy in the place of the library it was made from, before dlclose has returned, looks the same in
     * memory: its frames may get the other one's name, which has the same functions. */
    if (notices) CHECK(confused == 0 && misnamed * 50u <= captured);
}

static void run_damaged(void) {
    unsigned seed = 1;
    for (int i = 0; i < path_count; i++) damage_file(paths[i], &seed);
    callback_used = damaged_callback;
    run();
    fprintf(stderr, "%lu reached the start, the longest took %lu us\n", (unsigned long)reached_start,
        (unsigned long)longest_nanoseconds / 1000);
    CHECK(wrong == 0);
    CHECK(longest_nanoseconds < LONGEST * 1e9);
    /* The damage did something, and not to everything. */
    CHECK(reached_start > captured / 20 && reached_start < captured / 20 * 19);
}

int main(int count, char **arguments) {
    char folder[] = "/tmp/malloscope-storm-XXXXXX";
    if (!CHECK(count > 1 && mkdtemp(folder))) return check_result();
    shapes = count - 1;
    for (int copy = 0; copy < COPIES; copy++)
        for (int i = 1; i < count && path_count < PATHS_MAX; i++) {
            snprintf(paths[path_count], sizeof paths[0], "%s/%d.so", folder, path_count);
            copy_file(arguments[i], paths[path_count]);
            struct stat status;
            CHECK(stat(paths[path_count], &status) == 0);
            inodes[path_count++] = status.st_ino;
        }
    unwind_start(note, true);
    run_intact(true);
    run_intact(false);
    run_damaged();
    for (int i = 0; i < path_count; i++) unlink(paths[i]);
    rmdir(folder);
    return check_result();
}
