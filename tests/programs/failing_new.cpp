// Asks all forms of operator new for more than there is. Prints what each does, with a new-handler and
// without: the same with and without a recorder.
#include <cstdio>
#include <initializer_list>
#include <new>

static volatile std::size_t most = std::size_t(1) << 62;
static int handled;

static void handler() {
    if (++handled % 3 == 0) std::set_new_handler(nullptr); // the next time there is nobody to ask
}

template <typename Function> static void attempt(const char *name, Function function) {
    for (bool with_handler : {false, true}) {
        std::set_new_handler(with_handler ? handler : nullptr);
        handled = 0;
        const char *outcome = "null";
        try {
            void *block = function();
            if (block) outcome = "a block";
        } catch (const std::bad_alloc &) {
            outcome = "thrown";
        }
        std::printf("%s: %s, handler called %d times\n", name, outcome, handled);
    }
}

int main() {
    constexpr std::align_val_t alignment{128};
    attempt("new", [] { return ::operator new(most); });
    attempt("new[]", [] { return ::operator new[](most); });
    attempt("new nothrow", [] { return ::operator new(most, std::nothrow); });
    attempt("new[] nothrow", [] { return ::operator new[](most, std::nothrow); });
    attempt("new aligned", [=] { return ::operator new(most, alignment); });
    attempt("new[] aligned", [=] { return ::operator new[](most, alignment); });
    attempt("new aligned nothrow", [=] { return ::operator new(most, alignment, std::nothrow); });
    attempt("new[] aligned nothrow", [=] { return ::operator new[](most, alignment, std::nothrow); });
    void *block = ::operator new(1000); // all is well again
    ::operator delete(block);
    std::puts("done");
    return 0;
}
