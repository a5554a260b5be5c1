// C++ allocations whose number and sizes are known: each form of new and delete, and containers.
// Containers allocate inside the standard library, so their sites are found anywhere in the stack.
#include "ledger.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

LEDGER_SITE(new_object)
LEDGER_SITE(new_array)
LEDGER_SITE(new_aligned)
LEDGER_SITE(new_aligned_array)
LEDGER_SITE(new_nothrow)
LEDGER_SITE(new_nothrow_fails)
LEDGER_SITE(new_throws)
LEDGER_SITE(new_zero)
LEDGER_SITE(new_placement)
LEDGER_SITE(operator_new)
LEDGER_SITE(vector_reserve)
LEDGER_SITE(vector_growth)
LEDGER_SITE(string_long)
LEDGER_SITE(string_short)
LEDGER_SITE(map_nodes)
LEDGER_SITE(shared_object)

struct object {
    long values[5];
};

struct alignas(256) aligned_object {
    char bytes[256];
};

#define SITE_FUNCTION __attribute__((noinline)) static void

SITE_FUNCTION plain() {
    object *objects[10];
    for (auto &pointer : objects) {
        pointer = new object; // @site new_object
        ESCAPE(pointer);
        ledger_allocated(&new_object, sizeof(object));
    }
    for (int i = 0; i < 4; i++) {
        delete objects[i];
        ledger_freed(&new_object, sizeof(object));
    }
    for (int i = 1; i <= 8; i++) {
        int *array = new int[100 * i]; // @site new_array
        ESCAPE(array);
        ledger_allocated(&new_array, sizeof(int) * 100 * i);
        if (i % 2) {
            delete[] array;
            ledger_freed(&new_array, sizeof(int) * 100 * i);
        }
    }
    for (int i = 0; i < 3; i++) {
        char *nothing = new char[0]; // @site new_zero
        REQUIRE(nothing);
        ESCAPE(nothing);
        ledger_allocated(&new_zero, 0);
    }
    alignas(object) char room[sizeof(object)];
    object *placed = new (room) object; // @site new_placement
    ESCAPE(placed);

    void *raw = ::operator new(777); // @site operator_new
    ESCAPE(raw);
    ledger_allocated(&operator_new, 777);
    ::operator delete(raw, 777);
    ledger_freed(&operator_new, 777);
}

SITE_FUNCTION aligned() {
    for (int i = 0; i < 6; i++) {
        aligned_object *block = new aligned_object; // @site new_aligned
        REQUIRE(reinterpret_cast<uintptr_t>(block) % 256 == 0);
        ledger_allocated(&new_aligned, 256);
        if (i < 2) {
            delete block;
            ledger_freed(&new_aligned, 256);
        }
        aligned_object *blocks = new aligned_object[3]; // @site new_aligned_array
        REQUIRE(reinterpret_cast<uintptr_t>(blocks) % 256 == 0);
        ledger_allocated(&new_aligned_array, 3 * 256);
        if (i < 5) {
            delete[] blocks;
            ledger_freed(&new_aligned_array, 3 * 256);
        }
    }
}

SITE_FUNCTION failing() {
    char *block = new (std::nothrow) char[123]; // @site new_nothrow
    ESCAPE(block);
    ledger_allocated(&new_nothrow, 123);
    volatile size_t much = SIZE_MAX / 4;
    char *failed = new (std::nothrow) char[much]; // @site new_nothrow_fails
    REQUIRE(!failed);
    bool thrown = false;
    try {
        char *never = new char[much]; // @site new_throws
        ESCAPE(never);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    REQUIRE(thrown);
}

static std::vector<int> reserved;
static std::vector<long> growing;
static std::string text;
static std::map<int, int> nodes;
static std::shared_ptr<object> shared;

SITE_FUNCTION containers() {
    reserved.reserve(1000); // @site vector_reserve
    ledger_allocated(&vector_reserve, 4000);

    size_t capacity = 0;
    for (long i = 0; i < 1000; i++) {
        growing.push_back(i); // @site vector_growth
        if (growing.capacity() != capacity) {
            ledger_allocated(&vector_growth, sizeof(long) * growing.capacity());
            if (capacity) ledger_freed(&vector_growth, sizeof(long) * capacity);
            capacity = growing.capacity();
        }
    }

    text.reserve(300); // @site string_long
    ledger_allocated(&string_long, text.capacity() + 1);
    std::string brief("short"); // @site string_short
    ESCAPE(brief.data());

    for (int i = 0; i < 50; i++) {
        nodes.emplace(i, i); // @site map_nodes
        ledger_allocated(&map_nodes, sizeof(std::_Rb_tree_node<std::pair<const int, int>>));
    }
    for (int i = 0; i < 20; i++) {
        nodes.erase(i);
        ledger_freed(&map_nodes, sizeof(std::_Rb_tree_node<std::pair<const int, int>>));
    }

    using counted = std::_Sp_counted_ptr_inplace<object, std::allocator<void>, __gnu_cxx::_S_atomic>;
    shared = std::make_shared<object>(); // @site shared_object
    ledger_allocated(&shared_object, sizeof(counted));
}

int main() {
    plain();
    aligned();
    failing();
    containers();
    ledger_print();
    fflush(stdout);
    _Exit(0); // the containers stay live
}
