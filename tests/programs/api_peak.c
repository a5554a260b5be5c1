/* What is learned of a block after the heap was largest: its type, or that it is not to be counted. */
#include <malloscope.h>

#include <stdlib.h>
#include <string.h>

static char *volatile kept[64];

int main(int count, char **arguments) {
    mscope_heap heap = mscope_heap_register("arena", NULL);
    if (count > 1 && strcmp(arguments[1], "typed") == 0) {
        for (int i = 0; i < 10; i++) kept[i] = malloc(1000);
        kept[10] = malloc(1000); /* the peak */
        MSCOPE_TYPE(kept[10], "Late");
        for (int i = 0; i < 5; i++) free(kept[i]);
        MSCOPE_TYPE(kept[9], "Later"); /* was there at the peak too */
    } else {
        kept[0] = malloc(1 << 20);
        mscope_heap_backing(heap, kept[0], 1 << 20);
        for (int i = 0; i < 10; i++) mscope_heap_alloc(heap, kept[0] + i * 100, 100);
        mscope_heap_reset_range(heap, kept[0] + 500, kept[0] + (1 << 20));
        free(kept[0]);
    }
    return 0;
}
