/* Run without the recorder: every call can be made, and says so. Compiled as C and as C++. */
#include "ledger.h"

#include <malloscope.h>

#include <string.h>

static void no_visit(void *context, const struct mscope_registered *entry) {
    (void)context;
    (void)entry;
}

static int in_scope(void) {
    MSCOPE_SCOPE("scope");
    MSCOPE_SCOPE("another in the same block");
    MSCOPE_IGNORE();
    return 42;
}

int main(void) {
    char block[16];
    struct mscope_name name = {"name", 0};
    struct mscope_stats stats;
    memset(&stats, 0, sizeof stats);
    stats.size = sizeof stats;
    REQUIRE(strcmp(mscope_result_text(MSCOPE_ABSENT), "the recorder is not part of this process") == 0);
    REQUIRE(mscope_state() == MSCOPE_UNINITIALIZED);
    REQUIRE(mscope_init(NULL) == MSCOPE_ABSENT && mscope_start() == MSCOPE_ABSENT);
    REQUIRE(mscope_set_rate(4096) == MSCOPE_ABSENT);
    REQUIRE(mscope_stop() == MSCOPE_ABSENT && mscope_shutdown() == MSCOPE_ABSENT);
    REQUIRE(mscope_stats(&stats) == MSCOPE_ABSENT && mscope_snapshot("x") == MSCOPE_ABSENT);
    REQUIRE(mscope_watch_peak() == MSCOPE_ABSENT);
    REQUIRE(mscope_dump("x", MSCOPE_FORMAT_HEAP) == MSCOPE_ABSENT);
    mscope_heap heap = mscope_heap_register("heap", NULL);
    REQUIRE(heap == 0);
    REQUIRE(mscope_heap_alloc(heap, block, 16) == MSCOPE_ABSENT);
    REQUIRE(mscope_heap_alloc_many(heap, block, 16, 2) == MSCOPE_ABSENT);
    REQUIRE(mscope_heap_free(heap, block) == MSCOPE_ABSENT);
    REQUIRE(mscope_heap_resize(heap, block, block, 8) == MSCOPE_ABSENT);
    REQUIRE(mscope_heap_reset(heap) == MSCOPE_ABSENT);
    REQUIRE(mscope_heap_reset_range(heap, block, block + 1) == MSCOPE_ABSENT);
    REQUIRE(mscope_heap_backing(heap, block, 16) == MSCOPE_ABSENT);
    REQUIRE(mscope_heap_type(heap, block, "type") == MSCOPE_ABSENT);
    REQUIRE(mscope_type(block, &name) == MSCOPE_ABSENT && mscope_type_named(block, "type") == MSCOPE_ABSENT);
    REQUIRE(mscope_scope_enter(&name) == MSCOPE_SCOPE_NONE);
    mscope_scope_leave(0);
    mscope_scope_begin("scope");
    mscope_scope_end();
    mscope_ignore_begin();
    mscope_ignore_end();
    REQUIRE(MSCOPE_TYPE(block + 1, "type") == block + 1);
    REQUIRE(in_scope() == 42);
    struct mscope_register *reg = mscope_register_new(0);
    REQUIRE(!reg && mscope_register_insert(reg, block, 16, 1) == MSCOPE_ABSENT);
    REQUIRE(mscope_register_remove(reg, block, NULL) == MSCOPE_ABSENT);
    REQUIRE(mscope_register_find(reg, block, NULL) == MSCOPE_ABSENT);
    REQUIRE(mscope_register_set_context(reg, block, 2) == MSCOPE_ABSENT);
    REQUIRE(mscope_register_each(reg, no_visit, NULL) == MSCOPE_ABSENT);
    REQUIRE(mscope_register_overhead(reg) == 0 && mscope_register_count(reg) == 0);
    mscope_register_free(reg);
    return 0;
}
