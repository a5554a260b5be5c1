// containers OPERATIONS: works on maps, strings and vectors from several threads, prints a checksum.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

static std::mutex lock;
static std::list<std::unique_ptr<std::string>> passed_on;

struct alignas(64) line {
    char bytes[64];
};

static void work(unsigned number, long operations, uint64_t &checksum) {
    uint64_t random = 12345 + number;
    std::map<uint64_t, std::string> tree;
    std::unordered_map<std::string, std::vector<int>> table;
    for (long i = 0; i < operations; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        std::string key = "a key that does not fit inside " + std::to_string(random % 500);
        tree[random % 1000] = key;
        table[key].push_back(static_cast<int>(i));
        if (random % 7 == 0) tree.erase(tree.begin());
        if (random % 11 == 0) table.erase(key);
        auto aligned = std::make_unique<line[]>(1 + random % 5);
        if (reinterpret_cast<uintptr_t>(aligned.get()) % 64) std::abort();
        if (random % 5 == 0) {
            std::lock_guard<std::mutex> guard(lock);
            passed_on.push_back(std::make_unique<std::string>(200, 'x'));
            if (passed_on.size() > 100) passed_on.pop_front();
        }
        checksum = checksum * 31 + tree.size() + table.size();
    }
}

int main(int, char **argv) {
    long operations = std::atol(argv[1]);
    std::vector<uint64_t> checksums(4);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; i++) threads.emplace_back(work, i, operations, std::ref(checksums[i]));
    for (auto &thread : threads) thread.join();
    uint64_t sum = 0;
    for (uint64_t one : checksums) sum ^= one;
    std::printf("%lx\n", static_cast<unsigned long>(sum));
}
