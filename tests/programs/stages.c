/* A heap in stages: at each line on standard input the program goes on to the next one and says that it is
 * there. */
#include <stdio.h>
#include <stdlib.h>

#define KIB 1024
#define MIB (1024 * 1024)

static void *kept[64];
static int kept_count;

__attribute__((noinline)) static void first_stage(void) {
    for (int i = 0; i < 3; i++) kept[kept_count++] = malloc(MIB);
}

/* Blocks that no dump shows one by one, from functions of their own. */
#define SMALL(name, size)                                                                                    \
    __attribute__((noinline)) static void name(void) {                                                       \
        kept[kept_count++] = malloc(size);                                                                   \
    }
SMALL(small_a, 100)
SMALL(small_b, 200)
SMALL(small_c, 300)

__attribute__((noinline)) static void second_stage(void) {
    for (int i = 0; i < 10; i++) kept[kept_count++] = malloc(500 * KIB);
    small_a();
    small_b();
    small_c();
}

__attribute__((noinline)) static void third_stage(void) {
    for (int i = 0; i < 10; i++) free(kept[3 + i]);
    kept[kept_count++] = malloc(64 * KIB);
}

static void wait_for_a_line(int stage) {
    char line[16];
    printf("%d\n", stage);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) exit(1);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0);
    first_stage();
    wait_for_a_line(1);
    second_stage();
    wait_for_a_line(2);
    third_stage();
    wait_for_a_line(3);
    return 0;
}
