/* The bootstrap heap: blocks are zeroed, aligned, disjoint and marked, in its own room and beyond. */
#include "check.h"
#include "record/intercept/bootstrap_heap.h"
#include "record/sample/mark.h"

#include <errno.h>
#include <stdint.h>

#define BLOCKS 400 /* of 100 bytes and more: several times the room */

static bool is_zeroed(const char *block, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (block[i]) return false;
    return true;
}

static void blocks_are_their_owners_alone(void) {
    static char *blocks[BLOCKS];
    static size_t sizes[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        size_t alignment = (size_t)1 << (i % 12);
        sizes[i] = 100 + (size_t)i % 300;
        blocks[i] = bootstrap_heap_allocate(alignment, sizes[i]);
        if (!CHECK(blocks[i] != NULL)) return;
        CHECK((uintptr_t)blocks[i] % alignment == 0 && !mark_begins_page(blocks[i]));
        CHECK(is_zeroed(blocks[i], sizes[i]));
        memset(blocks[i], i % 255 + 1, sizes[i]);
    }
    for (int i = 0; i < BLOCKS; i++) {
        CHECK(blocks[i][0] == (char)(i % 255 + 1) && blocks[i][sizes[i] - 1] == (char)(i % 255 + 1));
        CHECK_EQUAL(mark_distance(blocks[i]), DISTANCE_BOOTSTRAP);
        CHECK_EQUAL(bootstrap_heap_size(blocks[i]), sizes[i]);
    }
}

static void a_block_may_be_larger_than_the_room(void) {
    char *block = bootstrap_heap_allocate(0, 5 << 20);
    if (!CHECK(block != NULL)) return;
    CHECK(is_zeroed(block, 5 << 20));
    CHECK_EQUAL(bootstrap_heap_size(block), 5 << 20);
}

static void is_refused(size_t alignment, size_t size) {
    errno = 0;
    CHECK(bootstrap_heap_allocate(alignment, size) == NULL);
    CHECK_EQUAL(errno, ENOMEM);
}

static void what_cannot_be_had_is_refused(void) {
    is_refused(4096, 10); /* a page's beginning has no room for a mark */
    is_refused(0, SIZE_MAX);
    is_refused(0, SIZE_MAX / 2);
    CHECK(bootstrap_heap_allocate(0, 0) != NULL);
}

int main(void) {
    blocks_are_their_owners_alone();
    a_block_may_be_larger_than_the_room();
    what_cannot_be_had_is_refused();
    return check_result();
}
