// A C++ program as they are written: maps and vectors of strings, built, searched, copied, torn down.
//
//     maps ROUNDS
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

static uint64_t state = 88172645463325252u;

static uint64_t sampler_random_next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static std::string name(uint64_t number) {
    return "customer number " + std::to_string(number % 1009) + " of the list";
}

static size_t round_of_work() {
    std::map<int, std::vector<std::string>> orders;
    std::unordered_map<std::string, std::string> notes;
    for (int i = 0; i < 4000; i++) {
        uint64_t number = sampler_random_next();
        orders[number % 509].push_back(name(number));
        if (number % 4 == 0) notes[name(number)] = "a note that does not fit the short string";
    }
    size_t sum = 0;
    std::map<int, std::vector<std::string>> copy = orders;
    for (auto &entry : copy) sum += entry.second.back().size();
    for (auto at = copy.begin(); at != copy.end();)
        at = sampler_random_next() % 2 ? copy.erase(at) : std::next(at);
    for (auto &note : notes) sum += note.second.size();
    return sum + copy.size();
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? strtol(argv[1], nullptr, 10) : 10;
    size_t sum = 0;
    for (long i = 0; i < rounds; i++) sum += round_of_work();
    printf("%zu\n", sum);
    return 0;
}
