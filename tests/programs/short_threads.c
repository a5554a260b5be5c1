/* Threads, one after the other, that allocate little and end. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 3000
#define BYTES   16384

static void *work(void *unused) {
    void *volatile block = malloc(BYTES);
    free(block);
    return unused;
}

int main(void) {
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) != 0) return 1;
        pthread_join(thread, NULL);
    }
    printf("{\"total_bytes\": %d}\n", THREADS * BYTES);
}
