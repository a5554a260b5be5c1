/* Asks for its statistics where they rest on few samples: when 6.2, 10 and 60 times RATE bytes were allocated,
 * and half of them are live. Prints what mscope_stats said each time. */
#include <malloscope.h>

#include <stdio.h>
#include <stdlib.h>

enum { RATE = 4096, BLOCK = 64, STOPS = 3 };

static const int stops[STOPS] = {62, 100, 600}; /* tenths of RATE bytes */
static void *volatile kept;

int main(void) {
    struct mscope_stats stats[STOPS];
    int allocated = 0;
    for (int stop = 0; stop < STOPS; stop++) {
        for (; allocated < stops[stop] * RATE / 10 / BLOCK; allocated++) {
            kept = malloc(BLOCK);
            if (allocated % 2) free(kept);
        }
        stats[stop].size = sizeof stats[stop];
        if (mscope_stats(&stats[stop]) != MSCOPE_OK) return 1;
    }
    for (int stop = 0; stop < STOPS; stop++)
        printf("%s{\"live_bytes\": %.17g, \"live_error\": %.17g, \"live_samples\": %llu, \"total_bytes\": "
               "%.17g, "
               "\"total_error\": %.17g}%s",
            stop ? ", " : "[", stats[stop].live_bytes, stats[stop].live_error,
            (unsigned long long)stats[stop].live_samples, stats[stop].total_bytes, stats[stop].total_error,
            stop == STOPS - 1 ? "]\n" : "");
    return 0;
}
