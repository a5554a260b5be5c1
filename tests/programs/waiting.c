/* waiting FILE: allocates, makes FILE, and allocates on until FILE is gone. Prints how it ended. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Different stacks, and blocks that stay, so that a recorder's tables grow. */
static void *deeper(int path, size_t size) {
    if (path > 1) return path % 2 ? deeper(path / 2, size) : deeper(path / 2, size);
    return malloc(size); /* @site waiting */
}

int main(int argc, char **argv) {
    FILE *file = fopen(argv[argc - 1], "w");
    if (!file) return 1;
    fclose(file);
    struct timespec moment = {0, 1000000};
    for (int i = 0; access(argv[argc - 1], F_OK) == 0 || i < 50; i++) {
        for (int k = 0; k < 400; k++) {
            char *block = deeper(1 + (i * 400 + k) % 4096, 64);
            *block = 1;
        }
        nanosleep(&moment, NULL);
    }
    puts("ended well");
    return 0;
}
