/* attach_pairs WHAT NUMBER: allocates and frees so many times, by malloc, calloc or new, and does
 * nothing else with the heap. */
#include "attach_target.h"

static void *allocate(const char *what) {
    if (what[0] == 'n') return operator new(64);
    return what[0] == 'c' ? calloc(4, 16) : malloc(64);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    long number = atol(argv[2]);
    wait_until_attached();
    for (long i = 0; i < number; i++) {
        void *block = allocate(argv[1]);
        keep(block);
        if (argv[1][0] == 'n')
            operator delete(block);
        else
            free(block);
    }
    wait_until_detached();
}
