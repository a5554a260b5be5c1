/* Threads that allocate, and free what others allocated: attach_threads THREADS BLOCKS. Each block's size is
 * known from its number; everything is freed in the end. The log tells the sums. */
#include "attach_target.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MAILBOXES = 256 };

static _Atomic(void *) mailboxes[MAILBOXES];
static atomic_ulong bytes, blocks, resizes;
static long blocks_each;

static size_t size_of(unsigned long i) {
    return 1 + i * 7919 % 3000;
}

static void *work(void *argument) {
    unsigned long seed = (unsigned long)argument, own_bytes = 0, own_resizes = 0;
    for (long i = 0; i < blocks_each; i++) {
        size_t size = size_of(seed + (unsigned long)i);
        char *block = malloc(size);
        own_bytes += size;
        if (i % 5 == 0) {
            block = realloc(block, size + 100);
            own_bytes += size + 100;
            own_resizes++;
        }
        block[0] = 1;
        /* Leaves it to whoever comes by next, and frees what lay there. */
        free(atomic_exchange(&mailboxes[(seed + (unsigned long)i * 31) % MAILBOXES], block));
    }
    atomic_fetch_add(&bytes, own_bytes);
    atomic_fetch_add(&blocks, (unsigned long)blocks_each + own_resizes);
    atomic_fetch_add(&resizes, own_resizes);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    long count = atol(argv[1]);
    static pthread_t threads[256];
    blocks_each = atol(argv[2]);
    wait_until_attached();
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(i * 1000003)) != 0) abort();
    for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < MAILBOXES; i++) free(mailboxes[i]);
    note('t', atomic_load(&resizes), (void *)atomic_load(&blocks), atomic_load(&bytes));
    wait_until_detached();
}
