/* A library that is opened, used and closed. */
#include <stdlib.h>
#include <string.h>

void *plugin_allocate(size_t size);
void plugin_free(void *block);

void *plugin_allocate(size_t size) {
    void *block = malloc(size); /* @site plugin */
    memset(block, 1, size);
    return block;
}

void plugin_free(void *block) {
    free(block);
}
