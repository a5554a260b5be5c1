/* Heaps of the program's own: arenas, marks, resizes, allocators that keep books. The first argument says
 * which of them; what was reported is printed as JSON: {"heap": {"objects": …}}. */
#include "ledger.h"

#include <malloscope.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct truth {
    char name[32];
    mscope_heap heap;
    long objects, bytes, live_objects, live_bytes;
};

#define TRUTHS_MOST 32
static struct truth truths[TRUTHS_MOST];
static int truth_count;

static struct truth *make_heap(const char *name, uint64_t rate) {
    struct truth *truth = &truths[truth_count++];
    struct mscope_heap_options options = {.size = sizeof options, .rate = rate};
    snprintf(truth->name, sizeof truth->name, "%s", name);
    truth->heap = mscope_heap_register(name, &options);
    return truth;
}

static void print_truths(void) {
    printf("{");
    for (int i = 0; i < truth_count; i++)
        printf("%s\"%s\": {\"objects\": %ld, \"bytes\": %ld, \"live_objects\": %ld, \"live_bytes\": %ld}",
            i ? ", " : "", truths[i].name, truths[i].objects, truths[i].bytes, truths[i].live_objects,
            truths[i].live_bytes);
    printf("}\n");
}

static void count(struct truth *truth, long objects, long bytes) {
    if (objects > 0) {
        ledger_add(&truth->objects, objects);
        ledger_add(&truth->bytes, bytes);
    }
    ledger_add(&truth->live_objects, objects);
    ledger_add(&truth->live_bytes, bytes);
}

static uint32_t dice(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(*state >> 33);
}

static void *map(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    return memory;
}

/* ---- arenas with marks, in eight threads ---- */

#define ARENA_BYTES (512u << 10)
#define THREADS     8
#define ROUNDS      50

struct arena {
    struct truth *truth;
    char *start;
    size_t used;
    long objects, bytes; /* since it was empty */
    uint64_t random;
    bool is_alone; /* its heap has no other arena */
};

struct mark {
    size_t used;
    long objects, bytes;
};

static void arena_alloc(struct arena *arena, size_t size) {
    char *object = arena->start + arena->used;
    arena->used += (size + 15) & ~(size_t)15;
    REQUIRE(arena->used <= ARENA_BYTES);
    REQUIRE(mscope_heap_alloc(arena->truth->heap, object, size) == MSCOPE_OK);
    arena->objects++;
    arena->bytes += (long)size;
    count(arena->truth, 1, (long)size);
}

static struct mark arena_mark(const struct arena *arena) {
    return (struct mark){arena->used, arena->objects, arena->bytes};
}

static void arena_back(struct arena *arena, struct mark mark) {
    mscope_heap heap = arena->truth->heap;
    if (mark.used == 0 && arena->is_alone)
        REQUIRE(mscope_heap_reset(heap) == MSCOPE_OK);
    else
        REQUIRE(
            mscope_heap_reset_range(heap, arena->start + mark.used, arena->start + arena->used) == MSCOPE_OK);
    count(arena->truth, mark.objects - arena->objects, mark.bytes - arena->bytes);
    arena->used = mark.used;
    arena->objects = mark.objects;
    arena->bytes = mark.bytes;
}

static void *fill_and_reset(void *given) {
    struct arena *arena = given;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 100; i++) arena_alloc(arena, 1 + dice(&arena->random) % 300);
        for (int depth = 0; depth < 10; depth++) {
            struct mark mark = arena_mark(arena);
            for (int i = 0; i < 30; i++) arena_alloc(arena, 1 + dice(&arena->random) % 100);
            if (depth % 3) arena_back(arena, mark);
        }
        if (round < ROUNDS - 1) arena_back(arena, (struct mark){0, 0, 0});
    }
    return NULL;
}

static void in_threads(bool is_shared) {
    static struct arena arenas[THREADS];
    pthread_t threads[THREADS];
    struct truth *shared = is_shared ? make_heap("shared", 0) : NULL;
    char *memory = map((size_t)THREADS * ARENA_BYTES); /* neighbours: a reset must not reach the next one */
    for (int i = 0; i < THREADS; i++) {
        char name[16];
        snprintf(name, sizeof name, "arena %d", i);
        arenas[i] = (struct arena){.truth = is_shared ? shared : make_heap(name, 0),
            .start = memory + (size_t)i * ARENA_BYTES,
            .random = (uint64_t)i,
            .is_alone = !is_shared};
        REQUIRE(pthread_create(&threads[i], NULL, fill_and_reset, &arenas[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* All threads report into one heap and any of them frees what another has allocated. */

#define SLOTS 4096

static _Atomic(char *) slots[SLOTS];

static void *exchange(void *given) {
    struct arena *arena = given;
    for (int i = 0; i < 20000; i++) {
        arena->used += 16;
        char *object = arena->start + arena->used;
        size_t size = 1 + dice(&arena->random) % 500;
        *(size_t *)object = size;
        REQUIRE(mscope_heap_alloc(arena->truth->heap, object, size) == MSCOPE_OK);
        count(arena->truth, 1, (long)size);
        char *former =
            __atomic_exchange_n((char **)&slots[dice(&arena->random) % SLOTS], object, __ATOMIC_SEQ_CST);
        if (!former) continue;
        count(arena->truth, -1, -(long)*(size_t *)former);
        REQUIRE(mscope_heap_free(arena->truth->heap, former) == MSCOPE_OK);
    }
    return NULL;
}

static void in_threads_across(void) {
    static struct arena arenas[THREADS];
    pthread_t threads[THREADS];
    struct truth *shared = make_heap("exchanged", 0);
    for (int i = 0; i < THREADS; i++) {
        arenas[i] = (struct arena){.truth = shared, .start = map(ARENA_BYTES), .random = (uint64_t)i};
        REQUIRE(pthread_create(&threads[i], NULL, exchange, &arenas[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* ---- on top of malloc ---- */

static void on_malloc(void) {
    struct truth *truth = make_heap("on malloc", 0);
    for (int i = 0; i < 200; i++) {
        size_t size = 3000 + (size_t)i * 16;
        char *block = i % 2 ? malloc(size) : aligned_alloc(64, (size + 63) & ~(size_t)63);
        REQUIRE(block && mscope_heap_backing(truth->heap, block, size) == MSCOPE_OK);
        for (int k = 0; k < 10; k++) { /* the first has the block's own address */
            REQUIRE(mscope_heap_alloc(truth->heap, block + k * 64, 50) == MSCOPE_OK);
            count(truth, 1, 50);
        }
        if (i % 4 >= 2) continue;
        REQUIRE(mscope_heap_reset_range(truth->heap, block, block + size) == MSCOPE_OK);
        count(truth, -10, -500);
        free(block);
    }
    /* A block that grows: what realloc gives is a new one, to be marked again. */
    char *grown = malloc(100);
    REQUIRE(mscope_heap_backing(truth->heap, grown, 100) == MSCOPE_OK);
    grown = realloc(grown, 100000);
    REQUIRE(mscope_heap_backing(truth->heap, grown, 100000) == MSCOPE_OK);
    REQUIRE(mscope_heap_alloc(truth->heap, grown, 90000) == MSCOPE_OK);
    count(truth, 1, 90000);
    /* Other blocks count as ever. */
    struct truth *other = &truths[truth_count++];
    strcpy(other->name, "malloc");
    for (int i = 0; i < 10; i++) {
        void *block = malloc(1234); /* @site other */
        ESCAPE(block);
        count(other, 1, 1234);
        if (i % 2) continue;
        free(block);
        count(other, -1, -1234);
    }
}

/* ---- sampled ---- */

#define MANY 300000

static void sample_many(uint64_t rate, const char *name, uint64_t seed) {
    struct truth *truth = make_heap(name, rate);
    char *memory = map((size_t)MANY * 16);
    for (int i = 0; i < MANY; i++) {
        size_t size = i % 100 ? 1 + dice(&seed) % 200 : 1 + dice(&seed) % 20000;
        mscope_heap_alloc(truth->heap, memory + (size_t)i * 16, size);
        count(truth, 1, (long)size);
        if (i % 3) continue;
        mscope_heap_free(truth->heap, memory + (size_t)i * 16);
        count(truth, -1, -(long)size);
    }
}

static void several_rates(void) {
    sample_many(1, "everything", 1);
    sample_many(4096, "each 4096", 2);
    sample_many(65536, "each 65536", 3);
    struct truth *counted = make_heap("many at once", 4096);
    char *memory = map((size_t)MANY * 16);
    for (int i = 0; i < MANY / 10; i++) {
        mscope_heap_alloc_many(counted->heap, memory + (size_t)i * 16, 320, 10);
        count(counted, 10, 320);
        if (i % 2) continue;
        mscope_heap_free(counted->heap, memory + (size_t)i * 16);
        count(counted, -10, -320);
    }
}

/* ---- one thing each ---- */

static void resize(void) {
    static char memory[1 << 16];
    struct truth *truth = make_heap("resized", 0);
    mscope_heap heap = truth->heap;
    REQUIRE(mscope_heap_resize(heap, NULL, memory, 100) == MSCOPE_OK); /* as realloc(NULL) */
    count(truth, 1, 100);
    REQUIRE(mscope_heap_resize(heap, memory, memory, 300) == MSCOPE_OK); /* in its place */
    count(truth, -1, -100);
    count(truth, 1, 300);
    REQUIRE(mscope_heap_resize(heap, memory, memory + 1024, 7000) == MSCOPE_OK); /* moved */
    count(truth, -1, -300);
    count(truth, 1, 7000);
    /* The old place is free for another. */
    REQUIRE(mscope_heap_alloc(heap, memory, 16) == MSCOPE_OK);
    count(truth, 1, 16);
    /* Of a block that was never reported: the new one is recorded all the same. */
    REQUIRE(mscope_heap_resize(heap, memory + 512, memory + 9000, 40) == MSCOPE_UNKNOWN);
    count(truth, 1, 40);
}

static void many(void) {
    static char memory[1 << 16];
    struct truth *truth = make_heap("counted", 0);
    for (int i = 0; i < 100; i++) {
        REQUIRE(mscope_heap_alloc_many(truth->heap, memory + i * 600, 500, (size_t)i + 1) == MSCOPE_OK);
        count(truth, i + 1, 500);
    }
    for (int i = 0; i < 50; i++) {
        REQUIRE(mscope_heap_free(truth->heap, memory + i * 600) == MSCOPE_OK);
        count(truth, -(i + 1), -500);
    }
    /* A free that was not reported: the address is given out again. */
    REQUIRE(mscope_heap_alloc(truth->heap, memory + 99 * 600, 10) == MSCOPE_OK);
    count(truth, -100, -500);
    count(truth, 1, 10);
}

/* The same address in several heaps at once. */
static void same_address(void) {
    static char memory[64];
    struct truth *heaps[10];
    for (int i = 0; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof name, "layer %d", i);
        heaps[i] = make_heap(name, 0);
        REQUIRE(mscope_heap_alloc(heaps[i]->heap, memory, 64u >> i / 2) == MSCOPE_OK);
        count(heaps[i], 1, 64 >> i / 2);
    }
    for (int i = 0; i < 10; i += 2) {
        REQUIRE(mscope_heap_free(heaps[i]->heap, memory) == MSCOPE_OK);
        count(heaps[i], -1, -(64 >> i / 2));
    }
    REQUIRE(mscope_heap_reset(heaps[1]->heap) == MSCOPE_OK);
    count(heaps[1], -1, -64);
}

struct books {
    int strings, numbers;
};

static void list_books(void *context, mscope_visit *visit, void *visitor) {
    const struct books *books = context;
    static char memory[64];
    for (int i = 0; i < books->strings; i++) visit(visitor, memory, 40, 1, "string");
    if (books->numbers) visit(visitor, memory, (size_t)books->numbers * 8, (size_t)books->numbers, "number");
    visit(visitor, NULL, 5, 1, NULL);
}

static void enumerate(void) {
    static struct books books = {.strings = 10, .numbers = 1000};
    struct truth *truth = &truths[truth_count++];
    strcpy(truth->name, "books");
    struct mscope_heap_options options = {sizeof options, 0, list_books, &books};
    truth->heap = mscope_heap_register("books", &options);
    struct mscope_stats stats = {.size = sizeof stats};
    REQUIRE(mscope_heap_alloc(truth->heap, &books, 1) == MSCOPE_BAD_STATE); /* it keeps books itself */
    REQUIRE(mscope_stats(&stats) == MSCOPE_OK);
    double before = stats.live_bytes;
    books.strings = 4;
    books.numbers = 0;
    REQUIRE(mscope_stats(&stats) == MSCOPE_OK);
    REQUIRE(before - stats.live_bytes == 6 * 40 + 8000);
    books.numbers = 3;
    REQUIRE(mscope_stats(&stats) == MSCOPE_OK);
    truth->objects = 10 + 1000 + 3 + 1;
    truth->bytes = 400 + 8000 + 24 + 5;
    truth->live_objects = 4 + 3 + 1;
    truth->live_bytes = 160 + 24 + 5;
}

/* A child inherits the heaps and what is in them; then the two go on by themselves. */
static void fork_between(void) {
    static char memory[4096];
    struct truth *truth = make_heap("forked", 0);
    for (int i = 0; i < 10; i++) REQUIRE(mscope_heap_alloc(truth->heap, memory + i * 64, 50) == MSCOPE_OK);
    REQUIRE(mscope_heap_type(truth->heap, memory, "inherited") == MSCOPE_OK);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 5; i++) REQUIRE(mscope_heap_free(truth->heap, memory + i * 64) == MSCOPE_OK);
        REQUIRE(mscope_heap_free(truth->heap, memory) == MSCOPE_UNKNOWN);
        REQUIRE(mscope_heap_alloc(truth->heap, memory, 7) == MSCOPE_OK);
        struct truth *own = make_heap("of the child", 0);
        REQUIRE(mscope_heap_alloc(own->heap, memory, 9) == MSCOPE_OK);
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    REQUIRE(mscope_heap_free(truth->heap, memory) == MSCOPE_OK);
    count(truth, 10, 500);
    count(truth, -1, -50);
}

/* ---- what is wrong is refused, and changes nothing ---- */

static void bad_calls(void) {
    static char memory[4096];
    struct truth *truth = make_heap("good", 1);
    struct truth *sampled = make_heap("sampled", 1 << 30);
    mscope_heap heap = truth->heap, strangers[] = {0, 77, 1023, 1024, 5000, UINT32_MAX};
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        mscope_heap stranger = strangers[i];
        REQUIRE(mscope_heap_alloc(stranger, memory, 10) == MSCOPE_NO_HEAP);
        REQUIRE(mscope_heap_alloc_many(stranger, memory, 10, 2) == MSCOPE_NO_HEAP);
        REQUIRE(mscope_heap_free(stranger, memory) == MSCOPE_NO_HEAP);
        REQUIRE(mscope_heap_resize(stranger, memory, memory, 10) == MSCOPE_NO_HEAP);
        REQUIRE(mscope_heap_reset(stranger) == MSCOPE_NO_HEAP);
        REQUIRE(mscope_heap_reset_range(stranger, memory, memory + 1) == MSCOPE_NO_HEAP);
        REQUIRE(mscope_heap_backing(stranger, memory, 10) == MSCOPE_NO_HEAP);
        REQUIRE(mscope_heap_type(stranger, memory, "type") == MSCOPE_NO_HEAP);
    }
    REQUIRE(mscope_heap_alloc(heap, memory, 100) == MSCOPE_OK);
    count(truth, 1, 100);
    REQUIRE(mscope_heap_free(heap, memory + 1) == MSCOPE_UNKNOWN);
    REQUIRE(mscope_heap_free(heap, memory) == MSCOPE_OK);
    count(truth, -1, -100);
    REQUIRE(mscope_heap_free(heap, memory) == MSCOPE_UNKNOWN); /* twice */
    REQUIRE(mscope_heap_free(heap, NULL) == MSCOPE_OK);        /* as free(NULL) */
    REQUIRE(mscope_heap_free(sampled->heap, memory) == MSCOPE_OK);
    REQUIRE(mscope_heap_alloc(heap, NULL, 10) == MSCOPE_BAD_ARGUMENT);
    REQUIRE(mscope_heap_alloc(heap, (void *)UINTPTR_MAX, 10) == MSCOPE_BAD_ARGUMENT);
    REQUIRE(mscope_heap_alloc_many(heap, memory, 10, 0) == MSCOPE_BAD_ARGUMENT);
    REQUIRE(mscope_heap_alloc_many(heap, memory, 10, SIZE_MAX) == MSCOPE_BAD_ARGUMENT);
    mscope_heap both[] = {heap, sampled->heap};
    for (int i = 0; i < 2; i++) {
        REQUIRE(mscope_heap_alloc(both[i], memory, SIZE_MAX) == MSCOPE_BAD_ARGUMENT);
        REQUIRE(mscope_heap_alloc(both[i], memory, SIZE_MAX / 2 + 1) == MSCOPE_BAD_ARGUMENT);
        REQUIRE(mscope_heap_alloc(both[i], memory, (size_t)1 << 48) == MSCOPE_BAD_ARGUMENT);
        REQUIRE(mscope_heap_alloc_many(both[i], memory, SIZE_MAX, 1) == MSCOPE_BAD_ARGUMENT);
        REQUIRE(mscope_heap_resize(both[i], NULL, memory, SIZE_MAX) == MSCOPE_BAD_ARGUMENT);
    }
    /* A resize to something impossible leaves the old block. */
    REQUIRE(mscope_heap_alloc(heap, memory, 60) == MSCOPE_OK);
    count(truth, 1, 60);
    REQUIRE(mscope_heap_resize(heap, memory, memory, SIZE_MAX) == MSCOPE_BAD_ARGUMENT);
    REQUIRE(mscope_heap_resize(heap, memory, NULL, 10) == MSCOPE_BAD_ARGUMENT);
    REQUIRE(mscope_heap_reset_range(heap, memory + 1, memory) == MSCOPE_BAD_ARGUMENT);
    REQUIRE(mscope_heap_reset_range(heap, memory, memory) == MSCOPE_OK);
    REQUIRE(mscope_heap_type(heap, memory, NULL) == MSCOPE_BAD_ARGUMENT);
    REQUIRE(mscope_heap_type(heap, NULL, "type") == MSCOPE_BAD_ARGUMENT);
    REQUIRE(mscope_heap_type(heap, memory + 1, "type") == MSCOPE_UNKNOWN);
    REQUIRE(mscope_heap_backing(heap, NULL, 10) == MSCOPE_BAD_ARGUMENT);
    REQUIRE(mscope_heap_backing(heap, memory + 16, 10) == MSCOPE_UNKNOWN); /* not malloc's */
    REQUIRE(mscope_heap_register(NULL, NULL) == 0);
    REQUIRE(mscope_type_named(NULL, "type") == MSCOPE_OK);
    REQUIRE(mscope_type_named(memory, NULL) == MSCOPE_BAD_ARGUMENT);
    REQUIRE(mscope_type_named(memory + 16, "type") == MSCOPE_UNKNOWN);
    mscope_scope_begin(NULL);
    mscope_scope_end();
    mscope_scope_end();
    mscope_ignore_end();
    mscope_scope_leave(12345);
    mscope_scope_leave(MSCOPE_SCOPE_NONE);
    struct mscope_stats small = {.size = 3};
    REQUIRE(mscope_stats(&small) == MSCOPE_BAD_ARGUMENT && mscope_stats(NULL) == MSCOPE_BAD_ARGUMENT);
    REQUIRE(mscope_result_text((mscope_result)-99) && mscope_result_text(MSCOPE_FULL));

    /* Options of another version of the header: what is known of them counts. */
    struct {
        struct mscope_heap_options options;
        char future[200];
    } large = {{.size = sizeof large, .rate = 1}, "later"};
    char long_name[10 << 10];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    mscope_heap longest = mscope_heap_register(long_name, &large.options);
    REQUIRE(longest && mscope_heap_alloc(longest, memory, 5) == MSCOPE_OK);
    REQUIRE(mscope_heap_type(longest, memory, long_name) == MSCOPE_OK);
    struct mscope_heap_options short_one = {.size = sizeof(size_t), .rate = 12345, .enumerate = list_books};
    mscope_heap of_short = mscope_heap_register("short options", &short_one);
    REQUIRE(of_short && mscope_heap_alloc(of_short, memory, 6) == MSCOPE_OK); /* it has no `enumerate` */
    mscope_scope_begin(long_name);
    void *block = malloc(77);
    ESCAPE(block);
    mscope_scope_end();
    int made = 0;
    while (made < 2000 && mscope_heap_register("one of many", NULL)) made++;
    REQUIRE(made > 1000 && made < 1024);
    REQUIRE(mscope_heap_register("one too many", NULL) == 0);
    sampled->objects = 0;
}

/* A sampled heap beside a malloc that is recorded exactly. */
static void estimated(void) {
    struct truth *truth = make_heap("sampled", 4096);
    for (uintptr_t i = 0; i < 10000; i++) mscope_heap_alloc(truth->heap, (void *)(0x100000 + i * 64), 64);
    struct mscope_stats stats = {.size = sizeof stats};
    REQUIRE(mscope_stats(&stats) == MSCOPE_OK);
    truth->live_bytes = (long)stats.live_error;
}

int main(int argument_count, char **arguments) {
    setvbuf(stdout, NULL, _IONBF, 0);
    const char *what = argument_count > 1 ? arguments[1] : "";
    if (strcmp(what, "shared") == 0) in_threads(true);
    if (strcmp(what, "apart") == 0) in_threads(false);
    if (strcmp(what, "across") == 0) in_threads_across();
    if (strcmp(what, "on_malloc") == 0) on_malloc();
    if (strcmp(what, "rates") == 0) several_rates();
    if (strcmp(what, "as_malloc") == 0) sample_many(0, "as malloc", 4);
    if (strcmp(what, "resize") == 0) resize();
    if (strcmp(what, "many") == 0) many();
    if (strcmp(what, "same_address") == 0) same_address();
    if (strcmp(what, "enumerate") == 0) enumerate();
    if (strcmp(what, "fork") == 0) fork_between();
    if (strcmp(what, "estimated") == 0) estimated();
    if (strcmp(what, "bad") == 0) bad_calls();
    print_truths();
    return 0;
}
