/* All forms of new and delete, and containers. With "throw" also a new that fails, from deep inside. */
#include "attach_target.h"

#include <new>
#include <string>
#include <vector>

struct alignas(128) Wide {
    char bytes[384];
};

template <typename T> static T *logged(T *block, size_t size) {
    keep(block);
    note('a', 0, block, size);
    return block;
}

static void fail(int depth) {
    volatile size_t sizes[] = {PTRDIFF_MAX - 4096, size_t(1) << 46};
    if (depth > 0) {
        fail(depth - 1);
        say("not thrown\n");
    }
    char *none = (char *)operator new(sizes[depth & 1]);
    keep(none);
}

int main(int argc, char **) {
    wait_until_attached();
    char *one = logged((char *)operator new(1111), 1111);
    char *many = logged(new char[2222], 2222);
    char *quiet = logged(new (std::nothrow) char[3333], 3333);
    Wide *wide = logged(new Wide, sizeof(Wide));
    Wide *wides = logged(new Wide[3], 3 * sizeof(Wide));
    note('f', 0, one, 0);
    operator delete(one, size_t(1111));
    note('f', 0, many, 0);
    delete[] many;
    note('f', 0, quiet, 0);
    delete[] quiet;
    note('f', 0, wide, 0);
    delete wide;
    note('f', 0, wides, 0);
    delete[] wides;
    {
        std::vector<long> numbers(555);
        note('a', 0, numbers.data(), 555 * sizeof(long));
        std::string text(777, 'x');
        note('a', 0, text.data(), 778);
        note('f', 0, text.data(), 0);
        note('f', 0, numbers.data(), 0);
    }
    /* A size of the page heap of tcmalloc, whose sized delete hands such a block on to free. */
    for (int i = 0; i < 20; i++) {
        char *pages = logged((char *)operator new(65536), 65536);
        note('f', 0, pages, 0);
        operator delete(pages, size_t(65536));
    }
    /* What the exceptions themselves take is not in the log. */
    for (int i = 0; argc > 1 && i < 20; i++) {
        try {
            fail(i);
        } catch (const std::bad_alloc &) {
            say("caught\n");
        }
    }
    wait_until_detached();
}
