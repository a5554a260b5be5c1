/* Five allocations of 11 bytes in all, by three different paths; from malloc, or, with FROM_HEAP, from an
 * arena of the program's own. */
#include <malloscope.h>

#include <stdlib.h>

#ifdef FROM_HEAP
static char memory[1024];
static size_t used;
static mscope_heap heap;
#define ALLOCATE(size) (used += 16, mscope_heap_alloc(heap, memory + used, (size_t)(size)))
#else
static void *volatile kept;
#define ALLOCATE(size) (kept = malloc((size_t)(size)))
#endif

__attribute__((noinline)) void b(int n);
__attribute__((noinline)) void a(int n);

void b(int n) {
    (void)ALLOCATE(n); /* @site b */
}

void a(int n) {
    (void)ALLOCATE(n); /* @site a */
    b(n);              /* @site a_calls_b */
    __asm__ volatile("");
}

int main(void) {
#ifdef FROM_HEAP
    heap = mscope_heap_register("arena", NULL);
#endif
    for (int i = 0; i < 2; i++) a(2); /* @site main_calls_a */
    b(3);                             /* @site main_calls_b */
    return 0;
}
