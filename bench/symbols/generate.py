"""A program with a lot of debug info, and calls of malloc and new at a lot of places.

Every unit is C++ of the kind that fills debug info in earnest: templates, standard containers and helpers that are
inlined into each other. Each call is made once, so a recording of the program holds every one of them.
"""
import os
import subprocess

FUNCTIONS = 100  # of a unit
ROUNDS = 9  # of three allocations, in each function

HEAD = """#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>
extern void *volatile kept;
namespace unit_%(unit)d {
template <typename T> struct item {
    T value;
    item *next = nullptr;
    explicit item(T v) : value(v) {}
};
template <typename T> inline void keep(T *p) { kept = p; }
template <typename T> inline item<T> *make(T v) {
    auto *p = new item<T>(v);
    keep(p);
    return p;
}
template <typename T> inline item<T> *push(item<T> *head, T v) {
    auto *p = make<T>(v);
    p->next = head;
    return p;
}
template <typename T> inline char *text(size_t n, T c) {
    char *p = static_cast<char *>(malloc(n));
    p[0] = static_cast<char>(c);
    keep(p);
    return p;
}
"""

RECORD = """
struct record_%(function)d {
    int id;
    std::string name;
    std::vector<int> values;
    record_%(function)d(int i) : id(i), name("a name that does not fit into a small string") { values.push_back(i); }
    bool operator<(const record_%(function)d &other) const { return id < other.id; }
};
__attribute__((noinline)) size_t function_%(function)d(int seed) {
    size_t sum = 0;
    item<int> *numbers = nullptr;
    item<long> *others = nullptr;
"""

ROUND = """    numbers = push<int>(numbers, seed + %(round)d);
    others = push<long>(others, seed);
    sum += numbers->value + others->value + text(16 + seed %% %(least)d, seed)[0];
"""

CONTAINERS = """    std::vector<record_%(function)d> list;
    list.emplace_back(seed);
    std::sort(list.begin(), list.end());
    std::map<int, record_%(function)d> tree;
    tree.emplace(seed, seed);
    std::unordered_map<std::string, record_%(function)d *> index;
    index["a key that does not fit into a small string"] = &list[0];
    sum += index.size() + tree.size();
"""


def unit_source(unit):
    parts = [HEAD % {"unit": unit}]
    for function in range(FUNCTIONS):
        parts.append(RECORD % {"function": function})
        parts += [ROUND % {"round": number, "least": number + 3} for number in range(ROUNDS)]
        if function % 10 == 0:
            parts.append(CONTAINERS % {"function": function})
        parts.append("    return sum;\n}\n")
    parts.append(f"}}\nsize_t run_unit_{unit}(int seed) {{\n    size_t sum = 0;\n")
    parts += [f"    sum += unit_{unit}::function_{function}(seed);\n" for function in range(FUNCTIONS)]
    parts.append("    return sum;\n}\n")
    return "".join(parts)


def main_source(units):
    declarations = "".join(f"size_t run_unit_{unit}(int seed);\n" for unit in range(units))
    calls = "".join(f"    sum += run_unit_{unit}(argc);\n" for unit in range(units))
    return (
        f"#include <cstddef>\nvoid *volatile kept;\n{declarations}"
        f"int main(int argc, char **) {{\n    size_t sum = 0;\n{calls}    return sum == 0;\n}}\n"
    )


def write_if_new(path, text):
    """So that what is compiled already stays good."""
    if not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def build(folder, units, jobs):
    """Compiles the program into `folder`, what has changed of it, and returns its path."""
    os.makedirs(folder, exist_ok=True)
    names = [f"unit_{unit}" for unit in range(units)] + ["main"]
    for unit in range(units):
        write_if_new(os.path.join(folder, f"unit_{unit}.cpp"), unit_source(unit))
    write_if_new(os.path.join(folder, "main.cpp"), main_source(units))
    rules = ["rule compile\n  command = g++ -O2 -g -c $in -o $out",
             "rule link\n  command = g++ $in -Wl,--build-id -o $out"]
    rules += [f"build {name}.o: compile {name}.cpp" for name in names]
    rules.append("build program: link " + " ".join(f"{name}.o" for name in names))
    write_if_new(os.path.join(folder, "build.ninja"), "\n".join(rules) + "\n")
    subprocess.run(["ninja", "-C", folder, "-j", str(jobs), "program"], check=True, stdout=subprocess.DEVNULL)
    return os.path.join(folder, "program")
