/* Allocates 50 MB within a moment, does nothing for a while, and ends. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *volatile block[50];

int main(void) {
    for (int i = 0; i < 50; i++) block[i] = malloc(1000000);
    struct timespec pause = {0, 300000000};
    nanosleep(&pause, NULL);
    return 0;
}
