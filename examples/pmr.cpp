// pmr: a std::pmr::memory_resource that tells malloscope what goes through it, and a program that uses two of
// them.
//
//     echo 'the words of a text' | pmr
//     malloscope run --exact -- pmr < text
//
// Put `reported` in front of any resource: in front of a pool or a monotonic buffer it shows each object,
// where a malloc profiler sees nothing but the blocks that they lie in.
#include <algorithm>
#include <iostream>
#include <map>
#include <memory_resource>
#include <string>
#include <vector>

#include <malloscope.h>

// Reports what is allocated from the resource behind it, as objects of a heap.
class reported : public std::pmr::memory_resource {
  public:
    reported(mscope_heap heap, std::pmr::memory_resource *upstream) : heap(heap), upstream(upstream) {}

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override {
        void *block = upstream->allocate(bytes, alignment);
        mscope_heap_alloc(heap, block, bytes);
        return block;
    }
    void do_deallocate(void *block, std::size_t bytes, std::size_t alignment) override {
        mscope_heap_free(heap, block); // before another thread can be given the address
        upstream->deallocate(block, bytes, alignment);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
        return this == &other;
    }

    mscope_heap heap;
    std::pmr::memory_resource *upstream;
};

// What a pool or a buffer gets from malloc to hold the heap's objects: marked, so that nothing counts twice.
class backing : public std::pmr::memory_resource {
  public:
    explicit backing(mscope_heap heap) : heap(heap) {}

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override {
        void *block = std::pmr::new_delete_resource()->allocate(bytes, alignment);
        mscope_heap_backing(heap, block, bytes);
        return block;
    }
    void do_deallocate(void *block, std::size_t bytes, std::size_t alignment) override {
        std::pmr::new_delete_resource()->deallocate(block, bytes, alignment);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
        return this == &other;
    }

    mscope_heap heap;
};

using word_counts = std::pmr::map<std::pmr::string, std::size_t>;

static void count_words(std::istream &text, word_counts &counts) {
    MSCOPE_SCOPE("count words");
    std::string word;
    while (text >> word) counts[std::pmr::string(word, counts.get_allocator().resource())]++;
}

static void print_most_frequent(const word_counts &counts) {
    MSCOPE_SCOPE("sort");
    // Everything in this buffer goes at once, at the end of this function.
    static mscope_heap heap = mscope_heap_register("sort", nullptr);
    backing blocks(heap);
    std::pmr::monotonic_buffer_resource buffer(&blocks);
    reported resource(heap, &buffer);
    std::pmr::vector<std::pair<std::size_t, const char *>> words(&resource);
    words.reserve(counts.size());
    for (const auto &[word, count] : counts) words.emplace_back(count, word.c_str());
    std::sort(words.begin(), words.end(), [](auto &a, auto &b) { return a.first > b.first; });
    for (std::size_t i = 0; i < std::min<std::size_t>(words.size(), 3); i++)
        std::cout << words[i].first << ' ' << words[i].second << '\n';
}

int main() {
    mscope_heap heap = mscope_heap_register("words", nullptr);
    backing blocks(heap);
    std::pmr::unsynchronized_pool_resource pool(&blocks);
    reported resource(heap, &pool);
    word_counts counts(&resource);
    count_words(std::cin, counts);
    print_most_frequent(counts);
}
