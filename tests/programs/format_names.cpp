// Names that must come out demangled, and that formats must not trip over.
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace depot {

template <typename First, typename Second> struct Shelf {
    __attribute__((noinline)) void *stock(int count) {
        void *last = nullptr;
        for (int i = 0; i < count; i++) last = std::malloc(sizeof(std::pair<First, Second>) * 100);
        return last;
    }
};

struct Label {
    // "operator()" and "operator," hold the characters that CSV and others use themselves.
    __attribute__((noinline)) void *operator,(int size) { return std::malloc(size); }
    __attribute__((noinline)) void *operator()(int size) { return std::malloc(size); }
};

} // namespace depot

int main() {
    depot::Shelf<int, double> shelf;
    depot::Label label;
    void *volatile blocks[] = {shelf.stock(20), (label, 5000), label(6000)};
    std::printf("%d\n", blocks[0] && blocks[1] && blocks[2]);
}
