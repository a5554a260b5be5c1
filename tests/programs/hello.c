/* hello [STATUS]: a small program that allocates a little. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    for (int i = 0; i < 1000; i++) {
        char *text = malloc(1000); /* @site hello */
        strcpy(text, "hello");
        if (i == 999) puts(text);
        if (i % 2) free(text);
    }
    return argc > 1 ? atoi(argv[1]) : 0;
}
