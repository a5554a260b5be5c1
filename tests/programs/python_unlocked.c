/* A library whose function allocates until it is told to stop. Called through ctypes it runs without the
 * interpreter's lock. */
#include <stdlib.h>

void churn(void);
void stop(void);

static volatile int over;

void churn(void) {
    while (!over) free(malloc(5000)); /* @site churn */
}

void stop(void) {
    over = 1;
}
