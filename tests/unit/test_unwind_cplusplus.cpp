// The walk is the same as libgcc's where C++ makes frames of its own: in operator new as called by the
// standard library, in destructors that run while an exception passes, in handlers, behind virtual calls and
// lambdas.
#include "test_unwind.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static int failures, operators;
static bool armed;

static void expect_same() {
    static thread_local uint64_t low, high;
    if (!same_as_libgcc(true, &low, &high)) failures++;
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void *operator new(std::size_t size) {
    if (armed) {
        armed = false; // the comparison itself allocates
        operators++;
        expect_same();
        armed = true;
    }
    if (void *block = std::malloc(size ? size : 1)) return block;
    throw std::bad_alloc();
}

__attribute__((noinline)) void operator delete(void *block) noexcept {
    std::free(block);
}
__attribute__((noinline)) void operator delete(void *block, std::size_t) noexcept {
    std::free(block);
}

struct Watched {
    ~Watched() { expect_same(); }
};

static __attribute__((noinline)) int throwing(int depth) {
    Watched watched;
    std::string text(static_cast<size_t>(depth) + 40, 'x');
    if (depth == 0) throw std::runtime_error(text);
    return throwing(depth - 1) + static_cast<int>(text.size());
}

static __attribute__((noinline)) void rethrowing(int depth) {
    try {
        throwing(depth);
    } catch (const std::exception &) {
        expect_same();
        Watched watched;
        throw;
    }
}

struct Shape {
    virtual ~Shape() = default;
    virtual int area(int size) const = 0;
};

struct Square : Shape {
    int area(int size) const override {
        expect_same();
        return size * size;
    }
};

int main() {
    // libgcc finds its tables and libstdc++ its emergency pool before allocations are watched.
    expect_same();
    armed = true;

    std::map<std::string, std::vector<int>> map;
    for (int i = 0; i < 50; i++)
        map["a key that is long enough to be allocated " + std::to_string(i % 7)].push_back(i);
    try {
        rethrowing(6);
    } catch (const std::exception &) {
        expect_same();
    }

    std::vector<int> numbers(100);
    for (int i = 0; i < 100; i++) numbers[static_cast<size_t>(i)] = i * 7919 % 100;
    std::sort(numbers.begin(), numbers.end(), [](int a, int b) {
        expect_same();
        return a < b;
    });
    std::unique_ptr<Shape> shape = std::make_unique<Square>();
    std::function<int(int)> area = [&](int size) { return shape->area(size) + numbers[3]; };
    area(3);
    armed = false;
    std::thread([] { expect_same(); }).join();

    std::fprintf(stderr, "%lu stacks compared, %d of them in operator new, %d failed\n",
        static_cast<unsigned long>(compared_stacks), operators, failures);
    return failures != 0 || operators < 20;
}
