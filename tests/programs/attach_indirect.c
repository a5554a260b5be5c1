/* Has its library plugin.c allocate, and does not itself. */
#include <stddef.h>

void *plugin_allocate(size_t size);

int main(void) {
    for (int i = 0; i < 10; i++) plugin_allocate(321);
    return 0;
}
