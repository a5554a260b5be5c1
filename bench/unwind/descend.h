/* A stack of a chosen depth, made of functions of different shapes, so that not all frames have one rule. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What is done at the bottom, by the program that includes this. */
static void at_depth(int depth);

typedef void descend_function(int depth, int left);
static descend_function plain, with_room, with_registers;
static descend_function *const shapes[] = {plain, with_room, with_registers};

static void descend(int depth, int left) {
    if (left <= 0)
        at_depth(depth);
    else
        shapes[left % 3](depth, left - 1);
}

static __attribute__((noinline)) void plain(int depth, int left) {
    descend(depth, left);
    __asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void with_room(int depth, int left) {
    char room[100];
    memset(room, left, sizeof room);
    __asm__ volatile("" ::"r"(room) : "memory");
    descend(depth, left);
    __asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void with_registers(int depth, int left) {
    __asm__ volatile("" ::: "rbx", "r12", "r13", "r14", "r15", "memory");
    descend(depth, left);
    __asm__ volatile("" ::: "memory");
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}
