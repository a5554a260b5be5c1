/* Coroutines whose memory lies right below the stack of a thread, with no guard page in between. A large one
 * allocates and ends. The upper half of its memory is given back. A smaller one runs in the lower half, and
 * allocates from the same place with the same stack pointer. The frames that stood above it the first time are
 * gone. */
#include <alloca.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define LARGE  (1u << 20)
#define SMALL  (LARGE / 2)
#define BLOCKS 100

static char *memory;
static ucontext_t home, coroutine;

static __attribute__((noinline)) void take_blocks(void) {
    for (volatile int i = 0; i < BLOCKS; i++) free(malloc(40));
}

/* Goes down the stack to one and the same stack pointer, wherever it starts. */
static __attribute__((noinline)) void descend(void) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), place = (uintptr_t)memory + SMALL / 2;
    volatile char *room = alloca(here - place);
    room[0] = 1;
    take_blocks();
    room[0]++;
}

static void begin(void) {
    descend();
    __asm__ volatile("");
}

static void run(size_t size) {
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = memory;
    coroutine.uc_stack.ss_size = size;
    coroutine.uc_link = &home;
    makecontext(&coroutine, begin, 0);
    swapcontext(&home, &coroutine);
}

static void *work(void *unused) {
    (void)unused;
    run(LARGE);
    munmap(memory + SMALL, LARGE - SMALL);
    run(SMALL);
    return NULL;
}

int main(void) {
    memory = mmap(NULL, 2 * LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, memory + LARGE, LARGE);
    if (pthread_create(&thread, &attributes, work, NULL)) return 1;
    pthread_join(thread, NULL);
    puts("both have run");
    return 0;
}
