/* A program with something for every view of the page: a table from the start, a leak that grows to the end, a burst in
 * the middle that makes the peak, and churn; called through different functions and through libc. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEPS 40

static void *volatile kept;

static void wait_a_little(void) {
    nanosleep(&(struct timespec){0, 25000000}, NULL);
}

__attribute__((noinline)) static void *start_up(void) {
    void *table = malloc(300000); /* @site start_up */
    memset(table, 1, 300000);
    return table;
}

__attribute__((noinline)) static void leak(void) {
    for (int i = 0; i < 10; i++) kept = malloc(1000); /* @site leak */
}

__attribute__((noinline)) static void churn(int rounds) {
    for (int i = 0; i < rounds; i++) {
        kept = malloc(64 + (size_t)i % 512); /* @site churn */
        free(kept);
    }
}

static int compare(const void *a, const void *b) {
    churn(1);
    return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static void burst(void) {
    void *blocks[100];
    for (int i = 0; i < 100; i++) blocks[i] = malloc(20000); /* @site burst */
    wait_a_little();
    for (int i = 0; i < 100; i++) free(blocks[i]);
}

__attribute__((noinline)) static void serve(int step) {
    int numbers[] = {4, 3, 2, 1};
    leak();
    churn(50);
    qsort(numbers, 4, sizeof *numbers, compare);
    if (step == STEPS / 2) burst();
}

int main(void) {
    kept = start_up();
    for (int step = 0; step < STEPS; step++) {
        serve(step);
        wait_a_little();
    }
    return 0;
}
