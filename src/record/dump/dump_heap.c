/* pprof's text format, with the addresses of the stacks and the whole memory map of the process:
 *
 *     heap profile: LIVE OBJECTS: LIVE BYTES [OBJECTS: BYTES] @ heapprofile
 *     1: 2 [3: 4] @ 0xleaf 0xcaller …
 *
 *     MAPPED_LIBRARIES:
 *     start-end r-xp offset device inode path
 *
 * format/heap_text.c writes the same from a recording, by the same rules. Readers look callers up one byte
 * before the address, the leaf at the address or one byte before it: callers are written as they are (return
 * addresses), the leaf one less. The values are estimates, for readers to take as they are. */
#include "core/stack_table.h"
#include "core/table.h"
#include "platform/system.h"
#include "record/dump/dump.h"

#include <errno.h>
#include <fcntl.h>

/* What has no address gets a page of its own, where no program is. So do libraries that may be closed and
 * have others in their place by now: each lies where its number says, and not where it was. */
#define CUT_PAGE     UINT64_C(0x800000001000)
#define DROPPED_PAGE UINT64_C(0x800000002000)
#define SCOPES_PAGE  UINT64_C(0x800000003000)
#define PAGE         UINT64_C(0x1000)
#define CLOSED_START UINT64_C(0x810000000000)
#define CLOSED_SHIFT 32 /* offsets in files are below */
#define MIDDLE(page) ((page) + PAGE / 2)

struct line {
    uint64_t live_objects, live_bytes, total_objects, total_bytes;
};

static uint64_t rounded(uint64_t fixed, uint64_t one) {
    return (fixed + one / 2) / one;
}

static uint64_t difference(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

/* In fixed point as yet. What was freed is read first, so that the difference is not negative. */
static struct line read_line(const struct stack_record *stack) {
    /* Acquire: allocations are read after frees, so that no more was freed than allocated (events.c). */
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
    /* pprof refuses bytes without objects. */
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

static uint64_t address_of(uint64_t frame) {
    switch (frame >> FRAME_KIND_SHIFT) {
    case FRAME_NATIVE:
        return frame & FRAME_VALUE_MASK ? frame & FRAME_VALUE_MASK : MIDDLE(CUT_PAGE);
    case FRAME_MODULE:
        return CLOSED_START + ((frame >> FRAME_MODULE_SHIFT & FRAME_MODULE_MASK) << CLOSED_SHIFT) +
               (frame & FRAME_OFFSET_MASK);
    case FRAME_CUT:
        return MIDDLE(CUT_PAGE);
    default:
        return 0; /* a scope or a thread: this format has no place for names */
    }
}

/* ---- merging: stacks that differ only in what this format leaves out are one ---- */

/* Goes through the addresses of a stack. 0 at the end. */
struct addresses {
    const uint64_t *frame, *end;
};

static struct addresses addresses_of(const struct recording *recording, const struct stack_record *stack) {
    /* Acquire: goes with the release of add_stack; the frames are seen. */
    uint32_t count = __atomic_load_n(&stack->frame_count, __ATOMIC_ACQUIRE);
    if (!count) return (struct addresses){NULL, NULL};
    const uint64_t *frames = arena_at(recording, stack->frames);
    return (struct addresses){frames, frames + count};
}

static uint64_t next_address(struct addresses *addresses) {
    uint64_t address = 0;
    while (!address && addresses->frame < addresses->end) address = address_of(*addresses->frame++);
    return address;
}

static bool are_equal(struct addresses a, struct addresses b) {
    if ((a.frame == a.end) != (b.frame == b.end)) return false; /* nothing is known of one of them */
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

/* Moves the figures of each stack to the first that is equal to it. `places` has room for twice as many
 * numbers as there are stacks, and is zero. */
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

/* ---- the map ---- */

static void put_mapping(struct dump_file *file, uint64_t start, uint64_t end, uint64_t offset) {
    dump_text_hex(file, start, 8);
    dump_text(file, "-");
    dump_text_hex(file, end, 8);
    dump_text(file, " r-xp ");
    dump_text_hex(file, offset, 8);
}

static void put_modules(struct dump_file *file, struct recording *recording) {
    /* Acquire, here, for a record's mark and for the stacks below: what is counted or marked is seen. */
    uint64_t count = atomic_load_explicit(&recording->header->modules.count, memory_order_acquire);
    for (uint64_t i = 0; i < count; i++) {
        const struct module_record *module = table_entry(recording, &recording->header->modules, i);
        if (atomic_load_explicit(&module->complete, memory_order_acquire) != 1 || !module->by_number)
            continue;
        uint64_t start = CLOSED_START + (i << CLOSED_SHIFT) + module->file_offset;
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

/* ---- the whole ---- */

static void put_stack(
    struct dump_file *file, const struct recording *recording, const struct stack_record *stack) {
    struct addresses addresses = addresses_of(recording, stack);
    bool is_known = addresses.frame < addresses.end;
    uint64_t leaf = next_address(&addresses), caller;
    put_address(file, leaf ? leaf - 1 : MIDDLE(is_known ? SCOPES_PAGE : DROPPED_PAGE));
    while ((caller = next_address(&addresses))) put_address(file, caller);
    dump_text(file, "\n");
}

/* One line for each stack that has none before it, and zeros for the others. Returns their sum. */
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

int dump_heap_write(struct dump_file *file, struct recording *recording) {
    struct recording_header *header = recording->header;
    /* The sums stand first and the figures go on changing: they are read once, for both. */
    uint64_t count = atomic_load_explicit(&header->stacks.count, memory_order_acquire);
    size_t room = count * (sizeof(struct line) + 2 * sizeof(uint32_t));
    struct line *lines = dump_map(room);
    if (!lines) return -ENOMEM;
    struct line sum = make_lines(recording, lines, count, (uint32_t *)(lines + count));

    dump_text(file, "heap profile: ");
    put_numbers(file, &sum);
    dump_text(file, " heapprofile\n");
    for (uint64_t i = 0; i < count; i++) {
        if (is_empty(&lines[i])) continue;
        put_numbers(file, &lines[i]);
        put_stack(file, recording, stack_table_get(recording, (uint32_t)i));
    }
    dump_unmap(lines, room);
    dump_text(file, "# bytes that the recorder takes itself: ");
    dump_text_decimal(file, atomic_load_explicit(&header->arena_used, memory_order_relaxed) +
                                atomic_load_explicit(&header->private_bytes, memory_order_relaxed));
    dump_text(file, "\n\nMAPPED_LIBRARIES:\n");
    int r = put_maps(file);
    put_modules(file, recording);
    put_mapping(file, CUT_PAGE, CUT_PAGE + PAGE, 0);
    dump_text(file, " 00:00 0 [cut]\n");
    put_mapping(file, DROPPED_PAGE, DROPPED_PAGE + PAGE, 0);
    dump_text(file, " 00:00 0 [dropped]\n");
    put_mapping(file, SCOPES_PAGE, SCOPES_PAGE + PAGE, 0);
    dump_text(file, " 00:00 0 [scopes]\n");
    int written = dump_text_end(file);
    return r < 0 ? r : written;
}
