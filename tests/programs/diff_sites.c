/* Forty functions, each with its share of live memory in blocks of its own size. The argument, in percent, is
 * how much larger one of them is. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SITE(n)                                                                                              \
    __attribute__((noinline)) static void site_##n(size_t bytes, size_t size) {                              \
        for (size_t left = bytes; left >= size; left -= size) {                                              \
            void **block = malloc(size);                                                                     \
            if (!block) abort();                                                                             \
            *block = last;                                                                                   \
            last = block;                                                                                    \
        }                                                                                                    \
        __asm__ volatile("" ::: "memory");                                                                   \
    }

static void *volatile last;

#define TEN(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) X(n##8) X(n##9)
#define ALL(X)    TEN(X, 1) TEN(X, 2) TEN(X, 3) TEN(X, 4)
ALL(SITE)

#define ENTRY(n) site_##n,
static void (*const sites[])(size_t, size_t) = {ALL(ENTRY)};

int main(int count, char **arguments) {
    size_t more = count > 1 ? (size_t)atoi(arguments[1]) : 0;
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++) {
        size_t size = (size_t)16 << i % 12, bytes = (size_t)(i + 1) * 40000;
        if (i == 30) bytes = (size_t)4000000 + 40000 * more; /* site_40 */
        sites[i](bytes, size);
    }
    _exit(0);
}
