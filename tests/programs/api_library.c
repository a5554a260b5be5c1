/* A library with a scope of its own, whose name goes with it. */
#include <malloscope.h>

void in_library(void (*act)(size_t), size_t size);

void in_library(void (*act)(size_t), size_t size) {
    MSCOPE_SCOPE("of the library");
    act(size);
    __asm__ volatile("");
}
