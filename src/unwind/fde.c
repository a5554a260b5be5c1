#include "unwind/fde.h"

#include <string.h>

#define ENCODING_UDATA4         0x03
#define ENCODING_DATAREL_SDATA4 0x3b

/* Where a function's code begins, and where its FDE lies: both relative to the start of .eh_frame_hdr. */
struct entry {
    int32_t begin, fde;
};

/* Entries that are copied at a time. A copy costs a system call, and hardly more if it is larger. */
#define ENTRIES_AT_ONCE 32

struct search {
    const struct mapping *mapping;
    uint64_t table;     /* address of its first entry */
    uint64_t low, high; /* the entry that is looked for has an index in [low, high) */
    int64_t begin, end; /* code that these entries cover, and ... */
    int64_t target;     /* ... the pc, relative to .eh_frame_hdr */
};

/* Interpolation search: functions are spread evenly enough for a guess by proportion. Every fourth step halves the
 * range instead, which bounds the number of steps. */
static enum fde_result search_run(struct search *search, uint64_t *ret_address, uint64_t *ret_begin) {
    struct entry entry[ENTRIES_AT_ONCE];
    for (unsigned step = 0;; step++) {
        uint64_t count = search->high - search->low, first = search->low;
        if (count > ENTRIES_AT_ONCE) {
            uint64_t guess = count / 2;
            if (step % 4 != 3 && search->end > search->begin)
                guess = (uint64_t)(search->target - search->begin) * count /
                        (uint64_t)(search->end - search->begin);
            guess = guess < ENTRIES_AT_ONCE / 2 ? 0 : guess - ENTRIES_AT_ONCE / 2;
            if (guess > count - ENTRIES_AT_ONCE) guess = count - ENTRIES_AT_ONCE;
            first += guess;
            count = ENTRIES_AT_ONCE;
        }
        if (!mapping_copy(
                search->mapping, entry, search->table + first * sizeof *entry, count * sizeof *entry))
            return FDE_STALE;
        if (entry[0].begin > search->target) {
            if (first == search->low) return FDE_NONE;
            search->high = first;
            search->end = entry[0].begin;
        } else if (entry[count - 1].begin <= search->target && first + count < search->high) {
            search->low = first + count - 1;
            search->begin = entry[count - 1].begin;
        } else {
            while (entry[count - 1].begin > search->target) count--;
            *ret_address = search->mapping->header + (uint64_t)(int64_t)entry[count - 1].fde;
            *ret_begin = search->mapping->header + (uint64_t)(int64_t)entry[count - 1].begin;
            return FDE_FOUND;
        }
    }
}

enum fde_result fde_find(
    const struct mapping *mapping, uint64_t pc, uint64_t *ret_address, uint64_t *ret_begin) {
    uint8_t header[MAPPING_IDENTITY_SIZE];
    if (!mapping_copy_header(mapping, header) || mapping_identity(header) != mapping->identity)
        return FDE_STALE;

    unsigned pointer_size = (header[1] & 7) == 3 ? 4 : 8;
    if (header[0] != 1 || header[2] != ENCODING_UDATA4 || header[3] != ENCODING_DATAREL_SDATA4)
        return FDE_NONE;
    unsigned table_offset = 4 + pointer_size + 4;
    uint32_t count;
    memcpy(&count, header + table_offset - 4, sizeof count);
    if (count == 0 || mapping->header_size < table_offset ||
        count > (mapping->header_size - table_offset) / sizeof(struct entry))
        return FDE_NONE;

    struct entry first;
    memcpy(&first, header + table_offset, sizeof first);
    struct search search = {
        .mapping = mapping,
        .table = mapping->header + table_offset,
        .high = count,
        .begin = first.begin,
        .end = (int64_t)(mapping->end - mapping->header),
        .target = (int64_t)(pc - mapping->header),
    };
    if (search.target < search.begin || search.target > INT32_MAX) return FDE_NONE;
    return search_run(&search, ret_address, ret_begin);
}
