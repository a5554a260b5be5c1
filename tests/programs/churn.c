/* churn PAIRS LIVE: replaces random ones of LIVE blocks, PAIRS times; or with LIVE 0 makes plain pairs. */
#include "ledger.h"

#include <stdint.h>

int main(int argc, char **argv) {
    REQUIRE(argc == 3);
    long pairs = atol(argv[1]), live = atol(argv[2]);
    uint64_t random = 88172645463325252u;
    size_t bytes = 0;
    if (live == 0) {
        for (long i = 0; i < pairs; i++) {
            size_t size = 16 + (size_t)(i & 1023);
            void *block = malloc(size); /* @site pairs */
            ESCAPE(block);
            free(block);
            bytes += size;
        }
    } else {
        void **blocks = calloc((size_t)live, sizeof *blocks);
        for (long i = 0; i < pairs; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            void **place = &blocks[random % (uint64_t)live];
            size_t size = 16 + (random >> 40) % 200;
            free(*place);
            *place = malloc(size); /* @site replaced */
            bytes += size;
        }
    }
    printf("{\"bytes\": %zu}\n", bytes);
    fflush(stdout);
    return 0;
}
