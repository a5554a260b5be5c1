/* Frees blocks from before the attach and blocks from after it: attach_older OLDER NEWER, how many of each. */
#include "attach_target.h"

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int older = atoi(argv[1]), newer = atoi(argv[2]);
    void **blocks = calloc((size_t)older + 1, sizeof *blocks);
    for (int i = 0; i < older; i++) blocks[i] = malloc(500);
    wait_until_attached();
    for (int i = 0; i < older; i++) free(blocks[i]);
    for (int i = 0; i < newer; i++) {
        void *block = malloc(700);
        keep(block);
        free(block);
    }
    wait_until_detached();
}
