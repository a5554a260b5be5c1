/* malloc is no cancellation point: a thread that allocates under a lock, while a cancellation of it is pending,
 * must get to unlock the lock. Each thread makes one allocation, its first, for which the recorder makes most
 * system calls. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t ready;
static int finished;

static void *allocate(void *argument) {
    (void)argument;
    pthread_barrier_wait(&ready); /* no cancellation point either */
    pthread_barrier_wait(&ready);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 20000; i++) {
        void *volatile block = malloc(1000 + (size_t)i);
        if (i % 2) free(block);
    }
    finished++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        pthread_barrier_init(&ready, NULL, 2);
        pthread_create(&thread, NULL, allocate, NULL);
        pthread_barrier_wait(&ready);
        pthread_cancel(thread);
        pthread_barrier_wait(&ready);
        pthread_join(thread, NULL);
        if (pthread_mutex_trylock(&lock) != 0) return puts("the lock is still held"), 1;
        pthread_mutex_unlock(&lock);
    }
    printf("%d finished\n", finished);
    return 0;
}
