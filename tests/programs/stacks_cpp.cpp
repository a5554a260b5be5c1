// stacks_cpp ROUNDS: allocates around exceptions: while they are made, from destructors that run while one
// flies, in handlers, after a rethrow; and from virtual calls, lambdas and threads. Prints a checksum.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static void *volatile escaped;
static unsigned long checksum;

[[gnu::noinline]] static std::string text(int number) {
    std::string long_enough = "a text that does not fit inside the object " + std::to_string(number);
    escaped = long_enough.data();
    return long_enough;
}

// Allocates when it goes out of scope, also when an exception takes it along.
struct careful {
    int number;
    ~careful() { checksum += text(number).size(); }
};

struct problem : std::runtime_error {
    std::vector<std::string> notes;
    explicit problem(int number) : std::runtime_error(text(number)), notes(3, text(number)) {}
};

struct shape {
    virtual ~shape() = default;
    virtual void draw(int depth) = 0;
};

struct circle final : shape {
    void draw(int depth) override {
        careful end{depth};
        if (depth == 0) throw problem(depth);
        std::unique_ptr<shape> inner = std::make_unique<circle>();
        inner->draw(depth - 1);
    }
};

[[gnu::noinline]] static void rethrow(int depth) {
    careful end{depth};
    try {
        circle().draw(depth);
    } catch (const problem &caught) {
        checksum += text(depth).size() + caught.notes.size();
        throw;
    }
}

[[gnu::noinline]] static void translate(int depth) {
    try {
        rethrow(depth);
    } catch (...) {
        std::throw_with_nested(std::logic_error(text(depth)));
    }
}

static int in_lambda(int depth) {
    std::function<int(int)> count_down = [&](int left) {
        std::map<int, std::string> table;
        for (int i = 0; i < 3; i++) table[i] = text(i);
        return left > 0 ? count_down(left - 1) + 1 : static_cast<int>(table.size());
    };
    return count_down(depth);
}

static void work(int round) {
    try {
        translate(round % 4);
    } catch (const std::exception &outer) {
        checksum += text(round).size();
        try {
            std::rethrow_if_nested(outer);
        } catch (const problem &inner) {
            checksum += std::string(inner.what()).size();
        }
    }
    checksum += static_cast<unsigned long>(in_lambda(round % 6));
}

struct before_and_after {
    before_and_after() { checksum += text(1).size(); }
    ~before_and_after() { checksum += text(2).size(); }
} lives_longer_than_main;

int main(int, char **arguments) {
    int rounds = std::atoi(arguments[1]);
    for (int round = 0; round < rounds; round++) {
        work(round);
        std::thread([round] { work(round); }).join();
        std::future<int> fails = std::async(std::launch::async, [round]() -> int { throw problem(round); });
        try {
            fails.get();
        } catch (const problem &caught) {
            checksum += caught.notes.size();
        }
    }
    std::printf("%lu\n", checksum);
}
