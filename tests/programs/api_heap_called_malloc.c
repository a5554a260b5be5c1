/* A heap of the program's own by the name and the rate that malloc has later. Blocks are so large that each
 * is sampled. */
#include "ledger.h"
#include "malloscope.h"

#define RATE   4096
#define SIZE   (1 << 20)
#define OWN    5
#define BLOCKS 7

int main(void) {
    struct mscope_heap_options options = {.size = sizeof options, .rate = RATE};
    mscope_heap heap = mscope_heap_register("malloc", &options);
    REQUIRE(heap && mscope_set_rate(RATE) == MSCOPE_OK);
    for (uintptr_t i = 1; i <= OWN; i++)
        REQUIRE(mscope_heap_alloc(heap, (void *)(i * SIZE), SIZE) == MSCOPE_OK);
    for (int i = 0; i < BLOCKS; i++) REQUIRE(malloc(SIZE));
    return 0;
}
