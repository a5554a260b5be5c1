/* attach_ends DONE: threads with large thread-local variables allocate; then it makes DONE, and waits to be killed.
 * Each prints its number, an address in its outermost own frame, and one behind all frames. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 3

static __thread volatile char local[4096];
static pthread_barrier_t all_have_allocated;

static void *allocate(void *unused) {
    local[0] = 1;
    printf("%d %lu %lu\n", (int)gettid(), (unsigned long)__builtin_frame_address(0), (unsigned long)local);
    for (int i = 0; i < 10; i++) {
        void *volatile block = malloc(1234); /* @site thread */
        (void)block;
    }
    pthread_barrier_wait(&all_have_allocated);
    pause();
    return unused;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    pthread_barrier_init(&all_have_allocated, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, allocate, NULL) != 0) abort();
    }
    pthread_barrier_wait(&all_have_allocated);
    fflush(stdout);
    if (symlink("done", argv[1]) != 0) abort();
    pause();
    return 0;
}
