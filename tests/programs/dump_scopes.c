/* dump_scopes HEAP RECORDING: blocks of one stack that differ in scope and type, and a heap of its own;
 * dumps. */
#include <malloscope.h>

#include <stdlib.h>

static void *volatile kept;

__attribute__((noinline)) static void allocate(int size) {
    MSCOPE_SCOPE("within");
    kept = malloc(size);
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    for (int i = 0; i < 4; i++) {
        static struct mscope_name names[] = {{"even", 0}, {"odd", 0}};
        mscope_scope scope = mscope_scope_enter(&names[i % 2]);
        allocate(100);
        if (i == 3) mscope_type_named(kept, "thing");
        mscope_scope_leave(scope);
    }
    mscope_heap pool = mscope_heap_register("pool", NULL);
    mscope_heap_alloc(pool, (void *)4096, 5000);
    return mscope_dump(arguments[1], MSCOPE_FORMAT_HEAP) != MSCOPE_OK ||
           mscope_dump(arguments[2], MSCOPE_FORMAT_RECORDING) != MSCOPE_OK;
}
