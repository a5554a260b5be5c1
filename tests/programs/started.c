/* What is started: says so, tells of its environment, and ends with a status of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    const char *preload = getenv("LD_PRELOAD");
    char *block = malloc(1000000);
    memset(block, 1, 1000000);
    printf("started with %s, recorder %s, %s\n", argc > 1 ? argv[1] : "nothing",
        preload && strstr(preload, "libmalloscope") ? "preloaded" : "absent", getenv("GIVEN") ? "given" : "inherited");
    if (preload && !strstr(preload, "libmalloscope")) printf("others: %s\n", preload);
    free(block);
    return 7;
}
