/* pprof's text format (base/heap_text_format.h), with the addresses of the stacks and the whole memory map of
 * the process. The values are estimates that readers take as they are. format/heap_text.c writes this format
 * from a recording.
 *
 * The format has no place for names of scopes and threads, nor for heaps and types. Stacks that differ in
 * nothing else become one line. */
#include "base/heap_text_format.h"
#include "core/stack_table.h"
#include "core/table.h"
#include "platform/pages.h"
#include "platform/system.h"
#include "record/dump/dump.h"
#include "record/dump/dump_text.h"

#include <errno.h>
#include <fcntl.h>

/* A frame in a library that can be closed names the library by its number, because another library may have
 * its addresses by now. Such a library is listed at an address that follows from its number:
 *
 *     HEAP_TEXT_MOVED + (number << MOVED_SHIFT) + offset in its file */
#define MOVED_SHIFT 32

struct line {
    uint64_t live_objects, live_bytes, total_objects, total_bytes;
};

static uint64_t rounded(uint64_t fixed, uint64_t one) {
    return (fixed + one / 2) / one;
}

static uint64_t difference(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

/* The figures of a stack, still in fixed point. */
static struct line read_line(const struct stack_record *stack) {
    /* Acquire: allocations are read after frees, so that freed ≤ allocated (core/events.c says what the
     * recorder does for that). */
    uint64_t freed_bytes = stack_freed_bytes(stack);
    uint64_t freed_objects = atomic_load_explicit(&stack->freed_objects, memory_order_acquire);
    uint64_t bytes = atomic_load_explicit(&stack->alloc_bytes, memory_order_relaxed);
    uint64_t objects = atomic_load_explicit(&stack->alloc_objects, memory_order_relaxed);
    return (struct line){
        .live_objects = difference(objects, freed_objects),
        .live_bytes = difference(bytes, freed_bytes),
        .total_objects = difference(objects, stack->inherited_objects),
        .total_bytes = difference(bytes, stack->inherited_bytes),
    };
}

static void round_line(struct line *line) {
    line->live_objects = rounded(line->live_objects, OBJECT_ONE);
    line->live_bytes = rounded(line->live_bytes, BYTE_ONE);
    line->total_objects = rounded(line->total_objects, OBJECT_ONE);
    line->total_bytes = rounded(line->total_bytes, BYTE_ONE);
    if (line->live_bytes && !line->live_objects) line->live_objects = 1;
    if (line->total_bytes && !line->total_objects) line->total_objects = 1;
}

static void put_numbers(struct dump_file *file, const struct line *line) {
    dump_text_decimal(file, line->live_objects);
    dump_text(file, ": ");
    dump_text_decimal(file, line->live_bytes);
    dump_text(file, " [");
    dump_text_decimal(file, line->total_objects);
    dump_text(file, ": ");
    dump_text_decimal(file, line->total_bytes);
    dump_text(file, "] @");
}

static void put_address(struct dump_file *file, uint64_t address) {
    dump_text(file, " 0x");
    dump_text_hex(file, address, 1);
}

/* 0: the frame has no address. */
static uint64_t address_of(uint64_t frame) {
    switch (frame >> FRAME_KIND_SHIFT) {
    case FRAME_NATIVE:
        return frame & FRAME_VALUE_MASK ? frame & FRAME_VALUE_MASK : heap_text_format_address(HEAP_TEXT_CUT);
    case FRAME_MODULE:
        return HEAP_TEXT_MOVED + ((frame >> FRAME_MODULE_SHIFT & FRAME_MODULE_MASK) << MOVED_SHIFT) +
               (frame & FRAME_OFFSET_MASK);
    case FRAME_CUT:
        return heap_text_format_address(HEAP_TEXT_CUT);
    default:
        return 0;
    }
}

/* ---- merging of stacks that become one line ---- */

/* An iterator over the addresses of a stack, leaf first. */
struct addresses {
    const uint64_t *frame, *end;
};

static struct addresses addresses_of(const struct recording *recording, const struct stack_record *stack) {
    /* Acquire: pairs with the release in add_stack (stack_table.c). A count that is not 0 is read after the
     * frames it counts were written. */
    uint32_t count = __atomic_load_n(&stack->frame_count, __ATOMIC_ACQUIRE);
    if (!count) return (struct addresses){NULL, NULL};
    const uint64_t *frames = arena_at(recording, stack->frames);
    return (struct addresses){frames, frames + count};
}

/* 0 at the end. */
static uint64_t next_address(struct addresses *addresses) {
    uint64_t address = 0;
    while (!address && addresses->frame < addresses->end) address = address_of(*addresses->frame++);
    return address;
}

static bool are_equal(struct addresses a, struct addresses b) {
    /* A stack of which nothing is known is not one that consists of scopes alone. */
    if ((a.frame == a.end) != (b.frame == b.end)) return false;
    uint64_t address;
    do
        if ((address = next_address(&a)) != next_address(&b)) return false;
    while (address);
    return true;
}

static uint64_t hash_of(struct addresses addresses) {
    uint64_t hash = 0, address;
    while ((address = next_address(&addresses))) {
        hash = (hash ^ address) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

static void add_line(struct line *sum, const struct line *line) {
    sum->live_objects += line->live_objects;
    sum->live_bytes += line->live_bytes;
    sum->total_objects += line->total_objects;
    sum->total_bytes += line->total_bytes;
}

static bool is_empty(const struct line *line) {
    return !line->live_objects && !line->total_objects;
}

/* Adds the figures of each stack to those of the first stack with equal addresses, and empties its own line.
 * `places` is a hash table of 2 × `count` numbers of stacks, each plus one, and zero at first. */
static void merge(struct recording *recording, struct line *lines, uint64_t count, uint32_t *places) {
    for (uint64_t i = 0; i < count; i++) {
        if (is_empty(&lines[i])) continue;
        struct addresses mine = addresses_of(recording, stack_table_get(recording, (uint32_t)i));
        uint64_t place = hash_of(mine) % (2 * count);
        for (; places[place]; place = (place + 1) % (2 * count)) {
            uint32_t other = places[place] - 1;
            if (!are_equal(mine, addresses_of(recording, stack_table_get(recording, other)))) continue;
            add_line(&lines[other], &lines[i]);
            lines[i] = (struct line){0};
            break;
        }
        if (!places[place]) places[place] = (uint32_t)i + 1;
    }
}

/* Fills `lines`, one for each stack; those that were merged into another are empty. Returns the sum. */
static struct line make_lines(
    struct recording *recording, struct line *lines, uint64_t count, uint32_t *places) {
    struct line sum = {0};
    for (uint64_t i = 0; i < count; i++) lines[i] = read_line(stack_table_get(recording, (uint32_t)i));
    merge(recording, lines, count, places);
    for (uint64_t i = 0; i < count; i++) {
        round_line(&lines[i]);
        add_line(&sum, &lines[i]);
    }
    return sum;
}

/* ---- the memory map ---- */

static void put_mapping(struct dump_file *file, uint64_t start, uint64_t end, uint64_t offset) {
    dump_text_hex(file, start, 8);
    dump_text(file, "-");
    dump_text_hex(file, end, 8);
    dump_text(file, " r-xp ");
    dump_text_hex(file, offset, 8);
}

/* The libraries that frames name by number. */
static void put_modules(struct dump_file *file, struct recording *recording) {
    /* Acquire: pairs with the release in table_append_many (the segments of so many records are there) and,
     * below, with that of `complete` (all fields of the record are written). */
    uint64_t count = atomic_load_explicit(&recording->header->modules.count, memory_order_acquire);
    for (uint64_t i = 0; i < count; i++) {
        const struct module_record *module = table_entry(recording, &recording->header->modules, i);
        if (atomic_load_explicit(&module->complete, memory_order_acquire) != 1 || !module->by_number)
            continue;
        uint64_t start = HEAP_TEXT_MOVED + (i << MOVED_SHIFT) + module->file_offset;
        put_mapping(file, start, start + (module->end - module->start), module->file_offset);
        dump_text(file, " ");
        dump_text_hex(file, module->device_major, 2);
        dump_text(file, ":");
        dump_text_hex(file, module->device_minor, 2);
        dump_text(file, " ");
        dump_text_decimal(file, module->inode);
        dump_text(file, " ");
        dump_text(file, arena_at(recording, module->path));
        dump_text(file, "\n");
    }
}

/* What is mapped now. */
static int put_maps(struct dump_file *file) {
    char part[512];
    long size, maps = system_call(SYS_openat, (uint64_t)AT_FDCWD, (uint64_t) "/proc/self/maps",
                   O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (maps < 0) return (int)maps;
    while ((size = system_call_again(SYS_read, (uint64_t)maps, (uint64_t)part, sizeof part, 0, 0, 0)) > 0)
        dump_text_bytes(file, part, (size_t)size);
    system_call(SYS_close, (uint64_t)maps, 0, 0, 0, 0, 0);
    return (int)size;
}

static void put_page(struct dump_file *file, uint64_t page, const char *name) {
    put_mapping(file, page, page + HEAP_TEXT_PAGE, 0);
    dump_text(file, " 00:00 0 ");
    dump_text(file, name);
    dump_text(file, "\n");
}

/* ---- the whole ---- */

static void put_stack(
    struct dump_file *file, const struct recording *recording, const struct stack_record *stack) {
    struct addresses addresses = addresses_of(recording, stack);
    bool is_known = addresses.frame < addresses.end;
    uint64_t leaf = next_address(&addresses), caller;
    uint64_t instead = heap_text_format_address(is_known ? HEAP_TEXT_SCOPES : HEAP_TEXT_DROPPED);
    put_address(file, leaf ? leaf - 1 : instead);
    while ((caller = next_address(&addresses))) put_address(file, caller);
    dump_text(file, "\n");
}

int dump_heap_write(struct dump_file *file, struct recording *recording) {
    struct recording_header *header = recording->header;
    /* Acquire: pairs with the release in table_append_many: the segments of so many records are there. */
    uint64_t count = atomic_load_explicit(&header->stacks.count, memory_order_acquire);
    /* The first line holds the sum of the others, and the program goes on changing the figures: all are read
     * once, before anything is written. */
    size_t room = count * (sizeof(struct line) + 2 * sizeof(uint32_t));
    struct line *lines = pages_take(room);
    if (!lines) return -ENOMEM;
    struct line sum = make_lines(recording, lines, count, (uint32_t *)(lines + count));

    dump_text(file, HEAP_TEXT_START);
    put_numbers(file, &sum);
    dump_text(file, HEAP_TEXT_KIND);
    for (uint64_t i = 0; i < count; i++) {
        if (is_empty(&lines[i])) continue;
        put_numbers(file, &lines[i]);
        put_stack(file, recording, stack_table_get(recording, (uint32_t)i));
    }
    pages_give(lines, room);
    dump_text(file, HEAP_TEXT_RECORDER);
    dump_text_decimal(file, atomic_load_explicit(&header->arena_used, memory_order_relaxed) +
                                atomic_load_explicit(&header->private_bytes, memory_order_relaxed));
    dump_text(file, "\n" HEAP_TEXT_MODULES);
    int r = put_maps(file);
    put_modules(file, recording);
    put_page(file, HEAP_TEXT_CUT, HEAP_TEXT_CUT_NAME);
    put_page(file, HEAP_TEXT_DROPPED, HEAP_TEXT_DROPPED_NAME);
    put_page(file, HEAP_TEXT_SCOPES, HEAP_TEXT_SCOPES_NAME);
    int written = dump_text_end(file);
    return r < 0 ? r : written;
}
