/* Allocates deep in recursion. Every level leaves a word in its frame that the copied stack must show, and
 * logs where it returns to.
 *
 *     attach_stack DEPTH main|thread|hole|coroutine
 *
 * "hole" puts a large array that is never written to between the frames, "coroutine" runs on a stack of its
 * own that ends where nothing is mapped. */
#include "attach_target.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <ucontext.h>

static bool with_hole;

static __attribute__((noinline)) void leaf(void) {
    void *block = malloc(4242);
    keep(block);
    note('a', 0, block, 4242);
}

static __attribute__((noinline)) void descend(int level);

static __attribute__((noinline)) void descend_over_hole(int level) {
    volatile char untouched[24 << 10];
    __asm__ volatile("" : : "r"(untouched) : "memory");
    descend(level);
    __asm__ volatile("" : : "r"(untouched) : "memory");
}

static __attribute__((noinline)) void descend(int level) {
    volatile uint64_t mark = 0xfeed000000000000 | (uint64_t)level;
    note('m', (uint64_t)__builtin_return_address(0), (void *)mark, 0);
    if (level == 0)
        leaf();
    else if (with_hole && level == 3)
        descend_over_hole(level - 1);
    else
        descend(level - 1);
    if (mark == 0) abort();
}

static int depth;

static void *work(void *unused) {
    descend(depth);
    return unused;
}

static ucontext_t home, away;

static void work_away(void) {
    descend(depth);
}

static void run_coroutine(void) {
    enum { SIZE = 256 << 10, PAGE = 4096 };
    char *place = mmap(NULL, SIZE + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED || munmap(place + SIZE, PAGE) != 0) abort();
    getcontext(&away);
    away.uc_stack.ss_sp = place;
    away.uc_stack.ss_size = SIZE;
    away.uc_link = &home;
    makecontext(&away, work_away, 0);
    swapcontext(&home, &away);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    depth = atoi(argv[1]);
    with_hole = strcmp(argv[2], "hole") == 0;
    wait_until_attached();
    if (strcmp(argv[2], "thread") == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) != 0) abort();
        pthread_join(thread, NULL);
    } else if (strcmp(argv[2], "coroutine") == 0) {
        run_coroutine();
    } else {
        work(NULL);
    }
    wait_until_detached();
}
