/* A library that interrupts the thread which loads it, many thousand times a second, with a handler that reports to
 * a heap. */
#include <malloscope.h>

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

void begin(void);
long count(void);

static mscope_heap heap;
static pthread_t target;
static volatile long signals;

static void on_signal(int number) {
    (void)number;
    const void *block = (const void *)(uintptr_t)(0x10000 + signals++ % 1000 * 16);
    mscope_heap_alloc(heap, block, 16);
    mscope_heap_free(heap, block);
}

static void *interrupt(void *unused) {
    for (;;) {
        pthread_kill(target, SIGUSR1);
        for (volatile int wait = 0; wait < 2000; wait++) {
        }
    }
    return unused;
}

void begin(void) {
    struct mscope_heap_options options = {.size = sizeof options, .rate = 1};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    pthread_t thread;
    heap = mscope_heap_register("signals", &options);
    target = pthread_self();
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&thread, NULL, interrupt, NULL);
}

long count(void) {
    return signals;
}
