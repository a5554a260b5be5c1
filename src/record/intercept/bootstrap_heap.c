#include "record/intercept/bootstrap_heap.h"

#include "platform/calls.h"
#include "record/sample/mark.h"

#include <errno.h>
#include <stdatomic.h>

static _Atomic size_t used_bytes;
static char room[16384] __attribute__((aligned(16))); /* the look-up takes some hundred bytes at most */

/* The mark holds the size. mark_place sees to it that no block begins a page. */
void *bootstrap_heap_allocate(size_t alignment, size_t size) {
    size_t needed;
    if (alignment < MARK_ROOM) alignment = MARK_ROOM;
    if (alignment > 2048 || __builtin_add_overflow(size, 3 * alignment, &needed)) goto no_memory;
    needed = (needed + 15) & ~(size_t)15;

    char *base = room;
    /* Any memory order will do: each caller gets a part of the array that no other caller has. */
    size_t used = needed > sizeof room ? sizeof room : atomic_fetch_add(&used_bytes, needed);
    if (used + needed <= sizeof room) {
        base += used;
    } else {
        base = call_mmap(needed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (!base) goto no_memory;
    }
    char *block =
        mark_place((char *)(((uintptr_t)base + alignment - 1) & ~(uintptr_t)(alignment - 1)), alignment);
    mark_set(block, DISTANCE_BOOTSTRAP, &(struct sample){.size = size});
    return block;

no_memory:
    errno = ENOMEM;
    return NULL;
}

size_t bootstrap_heap_size(const void *block) {
    return mark_sample(block, 0).size;
}
