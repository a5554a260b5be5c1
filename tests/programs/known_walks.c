/* Blocks whose sizes tell by which calls they were made: whoever takes one stack for another is found.
 *
 *     known_walks THREADS BLOCKS [anywhere]
 *
 * Each thread calls its way down DEPTH levels, at each to one of WIDTH functions whose frames differ in size,
 * and some of them with a frame pointer; the size of what it reports is the number of the way plus one. From
 * one place in `take`, at equal stack pointers, come walks of many routes. Meanwhile a signal interrupts
 * whatever is going on, the recorder too, until it has often enough; its handler goes ways of its own, and
 * now and then jumps out; with "anywhere" of the recorder, too. The blocks are those of a heap of the
 * program's own: handlers must not call malloc. Compiled with -DDEPTH=7 there are 78,125 ways. */
#include <malloscope.h>

#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef DEPTH
#define DEPTH 5
#endif
#define WIDTH 5

#define INTERRUPTIONS_LEAST 200

static __thread uint64_t random_state;
static __thread sigjmp_buf back;
static __thread volatile sig_atomic_t may_jump;
static unsigned long blocks;
static int anywhere;
static mscope_heap heap;
static _Atomic uint64_t next_address = 4096;
static _Atomic unsigned long working, made_by_all, interruptions;

static unsigned draw(void) {
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(random_state >> 33);
}

static __attribute__((noinline)) void take(unsigned way) {
    const void *address = (const void *)(next_address += 16);
    mscope_heap_alloc(heap, address, way + 1);
    mscope_heap_free(heap, address);
}

static void descend(unsigned way, unsigned level, unsigned turns);

/* `frame` bytes of its own; a size that is not known to the compiler makes it use a frame pointer. */
#define STEP(number, frame)                                                                                  \
    static __attribute__((noinline)) void step_##number(unsigned way, unsigned level, unsigned turns) {      \
        volatile char *own = alloca(frame);                                                                  \
        own[0] = (char)level;                                                                                \
        descend(way *WIDTH + number, level + 1, turns);                                                      \
        own[0]++;                                                                                            \
    }
STEP(0, 16)
STEP(1, 48)
STEP(2, 48)
STEP(3, (turns & 1) * 32 + 16)
STEP(4, 16 * (1 + turns % 3))

static void (*const step[])(unsigned, unsigned, unsigned) = {step_0, step_1, step_2, step_3, step_4};

static __attribute__((noinline)) void descend(unsigned way, unsigned level, unsigned turns) {
    if (level == DEPTH)
        take(way);
    else
        step[turns % WIDTH](way, level, turns / WIDTH);
    __asm__ volatile("");
}

/* It begins at the second level. */
static void interrupted(int signal) {
    (void)signal;
    unsigned turns = draw();
    interruptions++;
    descend(0, 1, turns);
    if (may_jump && turns % 16 == 0) siglongjmp(back, 1);
}

static void *work(void *seed) {
    random_state = (uintptr_t)seed;
    volatile unsigned long made = 0;
    sigsetjmp(back, 1);
    while (made < blocks || interruptions < INTERRUPTIONS_LEAST) {
        may_jump = 1;
        /* What is half recorded would be missing: only from here is it left. */
        for (volatile int i = 0; i < 20; i++) {
        }
        may_jump = anywhere;
        unsigned turns = draw();
        descend(0, 0, made % 3 ? turns % 40 : turns);
        made++;
    }
    may_jump = 0; /* a jump from here on would count this thread twice */
    made_by_all += made;
    working--;
    return NULL;
}

int main(int argc, char **argv) {
    unsigned long threads = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
    blocks = argc > 2 ? strtoul(argv[2], NULL, 0) : 100000;
    anywhere = argc > 3;
    pthread_t thread[64];
    if (threads > 64) return 2;
    struct mscope_heap_options options = {.size = sizeof options, .rate = 1};
    heap = mscope_heap_register("ways", &options);
    struct sigaction action = {.sa_handler = interrupted};
    sigaction(SIGUSR1, &action, NULL);
    working = threads;
    for (unsigned long i = 0; i < threads; i++) pthread_create(&thread[i], NULL, work, (void *)(i + 1));
    while (working) {
        usleep(50);
        for (unsigned long i = 0; i < threads; i++) pthread_kill(thread[i], SIGUSR1);
    }
    for (unsigned long i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    printf("%lu\n", made_by_all);
    return 0;
}
