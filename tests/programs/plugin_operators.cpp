// A plug-in with operators of its own, for a host that is no C++ program.
#include <cstdlib>
#include <new>
#include <string>

void *operator new(std::size_t size) {
    unsigned long *block = static_cast<unsigned long *>(std::malloc(size + 16));
    block[0] = 77;
    return block + 2;
}

void operator delete(void *pointer) noexcept {
    unsigned long *block = static_cast<unsigned long *>(pointer) - 2;
    if (!pointer) return;
    if (block[0] != 77) std::abort();
    std::free(block);
}

void operator delete(void *pointer, std::size_t) noexcept {
    operator delete(pointer);
}

extern "C" int plugin_work() {
    std::string text;
    for (int i = 0; i < 1000; i++) text += "some more text ";
    return static_cast<int>(text.size());
}
