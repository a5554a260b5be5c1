/* peak_shapes SHAPE: a heap of small blocks, of which the oldest are freed, with a course of its size over time.
 *
 *     steady   as large all the time, renewed a hundred times
 *     hump     grows and shrinks again
 *     spike    as large all the time but for a short time, in which it is a half larger
 *     growth   only grows
 *
 * Prints the largest size that it had, in bytes as they were asked for, and how much it allocated. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 200, SIZE = 16 * 16384, RENEWALS = 100, BLOCKS = 2 * SIZE / BLOCK };

static void *blocks[BLOCKS];
static size_t first, last, live, most, total;

__attribute__((noinline)) static void allocate(void) {
    void *volatile block = malloc(BLOCK);
    if (!block) abort();
    blocks[last++ % BLOCKS] = block;
    live += BLOCK;
    total += BLOCK;
    if (live > most) most = live;
}

static void shrink_to(size_t size) {
    while (live > size) {
        free(blocks[first++ % BLOCKS]);
        live -= BLOCK;
    }
}

static size_t size_at(const char *shape, double part) {
    if (strcmp(shape, "hump") == 0) return (size_t)(SIZE * (part < 0.5 ? 2 * part : 2 - 2 * part));
    if (strcmp(shape, "spike") == 0) return part > 0.5 && part < 0.52 ? 3 * SIZE / 2 : SIZE;
    return SIZE;
}

int main(int count, char **arguments) {
    const char *shape = count > 1 ? arguments[1] : "steady";
    size_t wanted = strcmp(shape, "growth") == 0 ? SIZE
                    : strcmp(shape, "hump") == 0 ? 4 * SIZE
                                                 : RENEWALS * (size_t)SIZE;
    while (total < wanted) {
        shrink_to(size_at(shape, (double)total / (double)wanted));
        allocate();
    }
    if (strcmp(shape, "growth") != 0) shrink_to(0);
    char line[128];
    int length = snprintf(line, sizeof line, "{\"peak\": %zu, \"total\": %zu}\n", most, total);
    return fwrite(line, 1, (size_t)length, stdout) == (size_t)length ? 0 : 1;
}
