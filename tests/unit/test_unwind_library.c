/* A library for test_unwind_storm, built in several shapes: the same name in each, at other places, with
 * other frames. */
int library_call(int (*callback)(void *), void *argument, int depth);

static volatile int padding_sink;

/* Moves what follows, so that no shape's return addresses are another's. */
__attribute__((used)) static void padding(void) {
    __asm__ volatile(".skip " PADDING ", 0x90\n .balign 4");
}

__attribute__((noinline)) int library_call(int (*callback)(void *), void *argument, int depth) {
    volatile char room[ROOM];
    room[0] = (char)depth;
    room[ROOM - 1] = 1;
    int result = depth > 0 ? library_call(callback, argument, depth - 1) : callback(argument);
    padding_sink += room[0];
    return result;
}
