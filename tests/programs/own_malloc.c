/* A program that carries its own malloc inside its executable. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static _Alignas(16) char room[1 << 20];
static size_t used;

void *malloc(size_t size) {
    size_t start = (used + 31) & ~(size_t)15;
    if (size > sizeof room - start) return NULL;
    used = start + size;
    memcpy(room + start - sizeof size, &size, sizeof size);
    return room + start;
}

void free(void *block) {
    (void)block;
}

void *calloc(size_t count, size_t size) {
    void *block = malloc(count * size);
    return block ? memset(block, 0, count * size) : NULL;
}

void *realloc(void *old, size_t size) {
    void *new = malloc(size);
    size_t before = 0;
    if (old) memcpy(&before, (char *)old - sizeof before, sizeof before);
    return new ? memcpy(new, old, before < size ? before : size) : NULL;
}

int main(void) {
    char *text = malloc(100);
    snprintf(text, 100, "my own heap");
    text = realloc(text, 200);
    int inside = text >= room && text < room + sizeof room;
    puts(text);
    free(text);
    return inside ? 0 : 1;
}
