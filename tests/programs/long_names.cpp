// Allocates in functions whose names are long.
#include <map>
#include <string>
#include <vector>

namespace store {
template <class Key, class Value> struct Table {
    std::map<Key, Value> rows;
    __attribute__((noinline)) char *insert(const std::map<Key, Value> &more, const std::vector<Value> &) {
        char *block = new char[1000 + more.size()];
        block[0] = 1;
        return block;
    }
};
} // namespace store

static char *volatile kept;

int main() {
    store::Table<std::string, std::vector<std::string>> table;
    for (int i = 0; i < 10; i++) kept = table.insert({}, {});
    return 0;
}
