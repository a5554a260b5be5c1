/* 32 threads whose every allocation is known: blocks freed by their own thread, blocks passed on and freed by
 * the next one, blocks that stay. Barriers separate the phases, so that the peaks are known too. */
#include "ledger.h"

#include <pthread.h>
#include <string.h>

#define THREADS 32
#define BLOCKS  500

LEDGER_SITE(own)
LEDGER_SITE(passed_on)
LEDGER_SITE(kept)
LEDGER_SITE(grown)

static pthread_barrier_t barrier;
static void *mailbox[THREADS][BLOCKS];

static size_t size_of(int thread, int block) {
    return 16 + (size_t)(thread * 7 + block * 13) % 1000;
}

static void *work(void *argument) {
    int me = (int)(long)argument;
    void *mine[BLOCKS];

    pthread_barrier_wait(&barrier);
    for (int i = 0; i < BLOCKS; i++) {
        mine[i] = malloc(size_of(me, i)); /* @site own */
        ledger_allocated(&own, size_of(me, i));
        memset(mine[i], me, size_of(me, i));
    }
    for (int i = 0; i < BLOCKS; i++) {
        mailbox[me][i] = calloc(1, size_of(i, me)); /* @site passed_on */
        ledger_allocated(&passed_on, size_of(i, me));
    }
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < BLOCKS; i++) {
        REQUIRE(*(unsigned char *)mine[i] == me);
        free(mine[i]);
        ledger_freed(&own, size_of(me, i));
    }
    int neighbour = (me + 1) % THREADS;
    for (int i = 0; i < BLOCKS; i += 2) {
        free(mailbox[neighbour][i]);
        ledger_freed(&passed_on, size_of(i, neighbour));
    }
    pthread_barrier_wait(&barrier);
    void *stays = malloc(1000 + (size_t)me); /* @site kept */
    ESCAPE(stays);
    ledger_allocated(&kept, 1000 + (size_t)me);
    /* Blocks of other threads, reallocated here. */
    int other = (me + 5) % THREADS;
    for (int i = 1; i < BLOCKS; i += 10) {
        void *new = realloc(mailbox[other][i], 2000); /* @site grown */
        ESCAPE(new);
        ledger_freed(&passed_on, size_of(i, other));
        ledger_allocated(&grown, 2000);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++) REQUIRE(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    ledger_print();
    return 0;
}
