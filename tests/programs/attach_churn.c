/* Allocates and frees on several threads as fast as it can, until standard input is closed. */
#include "attach_target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

static atomic_bool is_over;
static atomic_ulong rounds;

static void *work(void *argument) {
    unsigned long i = (unsigned long)argument;
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
        char *block = malloc(16 + i % 500);
        block[0] = (char)i;
        char *other = calloc(1, 32 + i % 100);
        block = realloc(block, 16 + i * 7 % 900);
        if (other[0] != 0) abort();
        free(other);
        free(block);
        i++;
        atomic_fetch_add_explicit(&rounds, 1, memory_order_relaxed);
    }
    return NULL;
}

int main(void) {
    static pthread_t threads[3];
    char line[16];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, work, (void *)(i * 1000));
    say("ready\n");
    while (read(STDIN_FILENO, line, sizeof line) > 0) say("%lu\n", atomic_load(&rounds));
    atomic_store(&is_over, true);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    say("unharmed\n");
}
