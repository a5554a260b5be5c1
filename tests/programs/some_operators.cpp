// A program that replaces two forms of operator new and delete and relies on the C++ library's others to call
// them. Its blocks carry a number in front: one that comes from elsewhere is noticed.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

static const unsigned long number = 0x6d616c6c6f73636f;
static long live;

void *operator new(std::size_t size) {
    unsigned long *block = static_cast<unsigned long *>(std::malloc(size + 16));
    if (!block) throw std::bad_alloc();
    block[0] = number;
    live++;
    return block + 2;
}

void operator delete(void *pointer) noexcept {
    if (!pointer) return;
    unsigned long *block = static_cast<unsigned long *>(pointer) - 2;
    if (block[0] != number) std::abort();
    live--;
    std::free(block);
}

struct thing {
    double a[5];
};

int main() {
    for (int i = 0; i < 2000; i++) {
        delete new thing;                // the sized form of C++14
        delete[] new thing[3];           // arrays
        delete new (std::nothrow) thing; // the form that does not throw
        std::vector<std::string> words(10, std::string(100, 'x'));
    }
    std::printf("%ld left\n", live);
    return live != 0;
}
