#define MSCOPE_LINKED
#include "record/api/own_heaps.h"

#include "base/limits.h"
#include "core/events.h"
#include "core/heap_table.h"
#include "core/live_table.h"
#include "core/name_table.h"
#include "core/sampler.h"
#include "core/stack_table.h"
#include "malloscope.h"
#include "platform/counter.h"
#include "record/api/block_types.h"
#include "record/api/enumerated_heaps.h"
#include "record/api/scopes.h"
#include "record/intercept/export.h"
#include "record/sample/address_filter.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"
#include "record/sample/work.h"

#include <string.h>

typedef const struct unwind_registers caller;

#define HEAP_UNITS   (UINT64_C(1) << 40)
#define RATE_MOST    HEAP_UNITS /* at this rate a byte is one unit */
#define REGION_SHIFT 16
#define REGIONS      65536u

/* READY: registered. NOTING: a thread is writing it into the recording. NOTED: it has a number there. */
enum heap_stage { HEAP_UNUSED, HEAP_READY, HEAP_NOTING, HEAP_NOTED };

struct own_heap {
    _Atomic uint32_t stage;
    uint32_t number; /* in the recording, if NOTED */
    uint64_t rate;   /* 0: that of malloc */
    mscope_enumerate *enumerate;
    void *context;
    char name[NAME_LENGTH + 1];
    _Atomic uint64_t low, high;    /* lowest and highest address of a sampled block so far */
    _Atomic uint64_t address_bits; /* all these addresses, or'ed */
};

static struct own_heap heaps[HEAPS_MOST];
static _Atomic uint32_t heaps_used;

/* HEAP_UNITS / rate, which the entry code multiplies a size by. 0: it calls own_heaps_alloc for every allocation, of
 * heaps that are exact, not in the recording, or not registered. */
__attribute__((visibility("hidden"))) _Atomic uint64_t own_heaps_scale[HEAPS_MOST];
/* Units until the calling thread's next sample; 0: the interval is to be drawn. The entry code charges it. */
__thread uint64_t own_heaps_countdown;

/* How many sampled blocks begin in a region of 2^REGION_SHIFT addresses, by a hash of heap and region. A reset of
 * regions that all have 0 need not look for blocks. A count that has reached its maximum stays there. */
static _Atomic uint16_t region_count[REGIONS];

mscope_result own_heaps_alloc(mscope_heap heap, const void *address, size_t size, caller *at);
mscope_result own_heaps_alloc_many(
    mscope_heap heap, const void *address, size_t size, size_t count, caller *at);
mscope_result own_heaps_resize(
    mscope_heap heap, const void *old_address, const void *new_address, size_t new_size, caller *at);

/* ---- the heaps ----
 *
 * Memory orders. A heap's description is written before its stage becomes HEAP_READY, its number before HEAP_NOTED; the
 * stage is stored with release, and loaded with acquire before these are read. Where no order is given below it is the
 * strongest: that code runs once per heap or per sample. Counts, bounds and filters are loaded relaxed: a thread that
 * asks about a block has the block's address from the program, which has it from the thread that reported the
 * block; what this thread wrote before is then visible. */

/* NULL: there is no such heap. */
static struct own_heap *find(mscope_heap heap) {
    if (heap == 0 || heap >= HEAPS_MOST) return NULL;
    return atomic_load_explicit(&heaps[heap].stage, memory_order_acquire) == HEAP_UNUSED ? NULL
                                                                                         : &heaps[heap];
}

bool own_heaps_has(uint32_t heap) {
    return find(heap) != NULL;
}

static uint64_t rate_of(const struct own_heap *own) {
    return own->rate ? own->rate : recorder.rate;
}

/* Writes a heap into the recording, unless that is done or under way. */
static void note(mscope_heap heap) {
    struct own_heap *own = &heaps[heap];
    uint32_t ready = HEAP_READY;
    if (!atomic_compare_exchange_strong(&own->stage, &ready, HEAP_NOTING)) return;
    uint64_t rate = own->enumerate ? 1 : rate_of(own);
    if (rate > RATE_MOST) rate = RATE_MOST;
    /* A byte is charged as a whole number of units. The recording gets the rate that this amounts to. */
    uint64_t scale = HEAP_UNITS / rate;
    rate = HEAP_UNITS / scale;
    uint32_t name = name_table_note(&recorder.recording, own->name);
    enum heap_kind kind = own->enumerate ? HEAP_ENUMERATED : HEAP_REPORTED;
    own->number = heap_table_note(&recorder.recording, name, rate, kind);
    bool noted = own->number != HEAP_NONE;
    if (noted && rate > 1) atomic_store(&own_heaps_scale[heap], scale);
    atomic_store_explicit(&own->stage, noted ? HEAP_NOTED : HEAP_READY, memory_order_release);
}

void own_heaps_start(void) {
    uint32_t used = atomic_load(&heaps_used);
    for (mscope_heap heap = 1; heap <= used && heap < HEAPS_MOST; heap++) note(heap);
}

/* Whether the caller's struct is long enough to have the option. */
#define HAS(options, field)                                                                                  \
    ((options) && (options)->size >= offsetof(struct mscope_heap_options, field) + sizeof((options)->field))

EXPORT mscope_heap mscope_heap_register(const char *name, const struct mscope_heap_options *options) {
    if (!name || (options && options->size < sizeof options->size)) return 0;
    if (atomic_load_explicit(&recorder.stage, memory_order_acquire) == OFF) return 0;
    uint32_t used = atomic_load(&heaps_used);
    do
        if (used + 1 >= HEAPS_MOST) return 0;
    while (!atomic_compare_exchange_weak(&heaps_used, &used, used + 1));
    RECORDER_WORKS;
    struct own_heap *own = &heaps[used + 1];
    own->rate = HAS(options, rate) ? options->rate : 0;
    if (own->rate > RATE_MOST) own->rate = RATE_MOST;
    own->enumerate = HAS(options, enumerate) ? options->enumerate : NULL;
    own->context = HAS(options, context) ? options->context : NULL;
    own->low = UINT64_MAX;
    strncpy(own->name, name, NAME_LENGTH); /* cut here; name_table_note cuts it at a whole character */
    atomic_store(&own->stage, HEAP_READY);
    /* If the recording is just beginning, the heap is noted when it is first used. */
    if (recorder_is_ready()) note(used + 1);
    return used + 1;
}

/* ---- the decision ---- */

/* Charges the calling thread. True: this allocation is to be sampled. */
static bool take(const struct own_heap *own, mscope_heap heap, size_t size) {
    if (rate_of(own) == 1) return recorder_is_active();
    uint64_t scale = atomic_load_explicit(&own_heaps_scale[heap], memory_order_relaxed), charge;
    if (__builtin_mul_overflow(scale, size, &charge) || charge > INT64_MAX) charge = INT64_MAX;
    if (!own_heaps_countdown) own_heaps_countdown = sampler_draw(recorder_thread->random, HEAP_UNITS);
    if (own_heaps_countdown > charge) {
        own_heaps_countdown -= charge;
        return false;
    }
    own_heaps_countdown = sampler_draw(recorder_thread->random, HEAP_UNITS);
    return recorder_is_active();
}

/* ---- blocks ---- */

/* For the heap index, the filter and the regions. Addresses have 48 bits. */
static uint64_t key_of(mscope_heap heap, const void *address) {
    return (uint64_t)heap << 48 | (uintptr_t)address;
}

static _Atomic uint16_t *region_of(uint64_t key) {
    return &region_count[(key >> REGION_SHIFT) * UINT64_C(0x9e3779b97f4a7c15) >> 48];
}

static void region_step(uint64_t key, uint16_t step) {
    _Atomic uint16_t *count = region_of(key);
    uint16_t seen = atomic_load_explicit(count, memory_order_relaxed);
    while (seen != UINT16_MAX && !atomic_compare_exchange_weak(count, &seen, (uint16_t)(seen + step))) {
    }
}

/* By a hash of the key: how many sampled blocks have it. 0: the block was not sampled (address_filter.h). */
static _Atomic uint8_t filter[1 << 16];

static _Atomic uint8_t *filter_of(uint64_t key) {
    return &filter[key * UINT64_C(0x9e3779b97f4a7c15) >> 48];
}

static void lower(_Atomic uint64_t *bound, uint64_t value) {
    uint64_t seen = atomic_load_explicit(bound, memory_order_relaxed);
    while (value < seen && !atomic_compare_exchange_weak(bound, &seen, value)) {
    }
}

/* Enters a sampled block into all that a free or a reset asks first. To be done before the program can free it. */
static void expect(struct own_heap *own, uint64_t key) {
    uint64_t address = key & LIVE_KEY_MASK;
    address_filter_step(filter_of(key), 1);
    region_step(key, 1);
    /* Before the bounds: a reset that finds the block within the bounds needs its bits. */
    atomic_fetch_or(&own->address_bits, address);
    lower(&own->low, address);
    counter_raise(false, &own->high, address);
}

static void expect_no_more(uint64_t key) {
    address_filter_step(filter_of(key), UINT8_MAX);
    region_step(key, UINT16_MAX);
}

static const void *address_of(uint64_t key) {
    return (const void *)(uintptr_t)(key & LIVE_KEY_MASK);
}

/* Counts a sampled block as freed. False: it is neither in the recording nor ignored. */
static bool end_block(const struct own_heap *own, uint64_t key) {
    struct forgotten forgotten = {.now = clock_now()};
    uint32_t slot = address_index_remove(&recorder.heap_index, key);
    if (slot == INDEX_IGNORED) {
        expect_no_more(key);
        return true;
    }
    if (slot == INDEX_NONE || !recorder_forget_slot(address_of(key), slot, own->number, &forgotten))
        return false;
    recorder_freed(&forgotten);
    expect_no_more(key);
    return true;
}

static mscope_result record(struct own_heap *own, uint64_t key, size_t size, size_t count, caller *at) {
    struct sample sample = {.size = size, .slot = LIVE_NONE, .heap = own->number, .count = (uint32_t)count};
    uint32_t former;
    end_block(own, key); /* a former block at this address, whose free was not reported */
    if (!recorder_capture(at, true, &sample) || !recorder_insert(address_of(key), &sample))
        return MSCOPE_FULL;
    if (!address_index_insert(&recorder.heap_index, key, sample.slot, &former)) {
        recorder_take_back(&sample);
        return MSCOPE_FULL;
    }
    expect(own, key);
    recorder_note_private_bytes();
    recorder_count(&sample);
    return MSCOPE_OK;
}

/* A block of an exact heap that the program wants ignored: its free is none of an unknown block. */
static void note_ignored(struct own_heap *own, uint64_t key) {
    uint32_t former;
    end_block(own, key);
    if (!address_index_insert(&recorder.heap_index, key, INDEX_IGNORED, &former)) return;
    expect(own, key);
    recorder_note_private_bytes();
}

/* Whether a report about a heap can be taken now. MSCOPE_OK with a NULL heap: nothing is recorded, so the report is
 * to be ignored. */
static mscope_result check(mscope_heap heap, struct own_heap **ret_own) {
    struct own_heap *own = find(heap);
    *ret_own = NULL;
    if (!own) return MSCOPE_NO_HEAP;
    if (own->enumerate) return MSCOPE_BAD_STATE;
    if (!recorder_is_ready()) return MSCOPE_OK;
    /* It was registered while the recording began, or the recording had no room for it then. */
    if (atomic_load_explicit(&own->stage, memory_order_acquire) == HEAP_READY) note(heap);
    if (atomic_load_explicit(&own->stage, memory_order_acquire) != HEAP_NOTED) return MSCOPE_FULL;
    if (recorder_knows_thread()) *ret_own = own;
    return MSCOPE_OK;
}

static mscope_result allocated(mscope_heap heap, const void *address, size_t size, size_t count, caller *at) {
    struct own_heap *own;
    mscope_result result = check(heap, &own);
    if (result != MSCOPE_OK) return result;
    if (!address || (uintptr_t)address & ~LIVE_KEY_MASK || size > LIVE_KEY_MASK || !count ||
        count > UINT32_MAX)
        return MSCOPE_BAD_ARGUMENT;
    if (!own) return MSCOPE_OK;
    if (!take(own, heap, size)) {
        if (rate_of(own) == 1 && scopes_ignore()) note_ignored(own, key_of(heap, address));
        return MSCOPE_OK;
    }
    return record(own, key_of(heap, address), size, count, at);
}

mscope_result own_heaps_alloc(mscope_heap heap, const void *address, size_t size, caller *at) {
    return allocated(heap, address, size, 1, at);
}

mscope_result own_heaps_alloc_many(
    mscope_heap heap, const void *address, size_t size, size_t count, caller *at) {
    return allocated(heap, address, size, count, at);
}

EXPORT mscope_result mscope_heap_free(mscope_heap heap, const void *address) {
    if (heap == 0 || heap >= HEAPS_MOST) return MSCOPE_NO_HEAP;
    uint64_t key = key_of(heap, address);
    /* An address of more than 48 bits was never sampled, and its key may be equal to one of another heap. */
    bool expected = atomic_load_explicit(filter_of(key), memory_order_relaxed) && key >> 48 == heap;
    if (!expected && atomic_load_explicit(&own_heaps_scale[heap], memory_order_relaxed)) return MSCOPE_OK;
    RECORDER_WORKS;
    struct own_heap *own;
    mscope_result result = check(heap, &own);
    if (result != MSCOPE_OK || !own || !address) return result;
    if (expected && end_block(own, key)) return MSCOPE_OK;
    if (rate_of(own) > 1) return MSCOPE_OK;
    counter_add(false, &recorder.recording.header->unknown_frees, 1);
    return MSCOPE_UNKNOWN;
}

uint32_t own_heaps_number(uint32_t heap) {
    struct own_heap *own;
    return check(heap, &own) == MSCOPE_OK && own ? own->number : HEAP_NONE;
}

/* The live entry of a sampled block; NULL if there is none at this address. */
static const struct live_entry *entry_of(mscope_heap heap, const void *address) {
    uint64_t key = key_of(heap, address);
    if ((uintptr_t)address & ~LIVE_KEY_MASK || !atomic_load_explicit(filter_of(key), memory_order_relaxed))
        return NULL;
    const struct live_entry *entry =
        live_table_at_checked(&recorder.recording, address_index_find(&recorder.heap_index, key));
    return entry && live_table_address(entry) == (uintptr_t)address ? entry : NULL;
}

/* The type of a block, by number; NAME_NONE if it has none. */
static uint32_t type_of(const struct live_entry *entry) {
    return stack_table_get(&recorder.recording, entry->stack)->type;
}

static void set_type(const struct own_heap *own, mscope_heap heap, const void *block, uint32_t type) {
    uint32_t stack;
    if (entry_of(heap, block))
        block_types_set(
            block, address_index_find(&recorder.heap_index, key_of(heap, block)), own->number, type, &stack);
}

/* The block keeps the number of its objects and its type, where these are known: of a block that was recorded. */
mscope_result own_heaps_resize(
    mscope_heap heap, const void *old_address, const void *new_address, size_t new_size, caller *at) {
    struct own_heap *own;
    mscope_result result = check(heap, &own);
    if (result != MSCOPE_OK) return result;
    if (!new_address || (uintptr_t)new_address & ~LIVE_KEY_MASK || new_size > LIVE_KEY_MASK)
        return MSCOPE_BAD_ARGUMENT;
    const struct live_entry *entry = own && old_address ? entry_of(heap, old_address) : NULL;
    uint32_t count = entry ? entry->count : 1, type = entry ? type_of(entry) : NAME_NONE;
    result = old_address ? mscope_heap_free(heap, old_address) : MSCOPE_OK;
    mscope_result allocation = allocated(heap, new_address, new_size, count, at);
    if (own && type != NAME_NONE) set_type(own, heap, new_address, type);
    return result != MSCOPE_OK ? result : allocation;
}

/* ---- reset ---- */

/* Whether a sampled block may begin at an address from `from` to `last`. */
static bool may_hold(mscope_heap heap, uint64_t from, uint64_t last) {
    uint64_t first_region = from >> REGION_SHIFT, last_region = last >> REGION_SHIFT;
    if (last_region - first_region >= REGIONS) return true;
    for (uint64_t region = first_region; region <= last_region; region++)
        if (atomic_load_explicit(
                region_of((uint64_t)heap << 48 | region << REGION_SHIFT), memory_order_relaxed))
            return true;
    return false;
}

/* Counts the sampled blocks at addresses from `from` to `last` as freed. They are found by trying every address that
 * is a multiple of `grain`, the largest power of two that divides all addresses of the heap; or by looking through all
 * live samples, if these are fewer. */
static void end_range(const struct own_heap *own, mscope_heap heap, uint64_t from, uint64_t last) {
    uint64_t bits = atomic_load(&own->address_bits), grain = bits ? bits & -bits : 1;
    uint64_t slots = atomic_load_explicit(&recorder.recording.header->live.count, memory_order_acquire);
    if ((last - from) / grain < slots) {
        for (uint64_t address = (from + grain - 1) & -grain; address <= last; address += grain) {
            uint64_t key = (uint64_t)heap << 48 | address;
            if (atomic_load_explicit(filter_of(key), memory_order_relaxed)) end_block(own, key);
        }
        return;
    }
    for (uint32_t slot = 0; slot < slots; slot++) {
        uint64_t address = live_table_address(live_table_at(&recorder.recording, slot));
        uint64_t key = (uint64_t)heap << 48 | address;
        if (address && from <= address && address <= last &&
            atomic_load_explicit(filter_of(key), memory_order_relaxed))
            end_block(own, key);
    }
}

static mscope_result reset(mscope_heap heap, uint64_t from, uint64_t last) {
    RECORDER_WORKS;
    struct own_heap *own;
    mscope_result result = check(heap, &own);
    if (result != MSCOPE_OK || !own) return result;
    uint64_t low = atomic_load_explicit(&own->low, memory_order_relaxed);
    uint64_t high = atomic_load_explicit(&own->high, memory_order_relaxed);
    if (from < low) from = low;
    if (last > high) last = high;
    if (from <= last && may_hold(heap, from, last)) end_range(own, heap, from, last);
    return MSCOPE_OK;
}

EXPORT mscope_result mscope_heap_reset(mscope_heap heap) {
    return reset(heap, 0, LIVE_KEY_MASK);
}

EXPORT mscope_result mscope_heap_reset_range(mscope_heap heap, const void *from, const void *to) {
    if (from > to) return MSCOPE_BAD_ARGUMENT;
    return from == to ? MSCOPE_OK : reset(heap, (uintptr_t)from, (uintptr_t)to - 1);
}

/* ---- heaps that list what is live (enumerated_heaps.h) ---- */

/* 1 while a thread enumerates heaps. Another thread that reads figures meanwhile takes what the last listing found. */
static _Atomic uint32_t enumerating;

void own_heaps_after_fork(void) {
    atomic_store_explicit(&enumerating, 0, memory_order_relaxed);
}

void own_heaps_enumerate(void) {
    RECORDER_WORKS;
    if (!recorder_is_recording() || atomic_exchange(&enumerating, 1)) return;
    uint32_t used = atomic_load(&heaps_used);
    for (mscope_heap heap = 1; heap <= used && heap < HEAPS_MOST; heap++) {
        struct own_heap *own = &heaps[heap];
        note(heap); /* unless that is done */
        if (atomic_load_explicit(&own->stage, memory_order_acquire) == HEAP_NOTED && own->enumerate)
            enumerated_heaps_read(
                own->number, name_table_note(&recorder.recording, own->name), own->enumerate, own->context);
    }
    atomic_store(&enumerating, 0);
}

/* ---- types ---- */

EXPORT mscope_result mscope_heap_type(mscope_heap heap, const void *block, const char *type) {
    RECORDER_WORKS;
    struct own_heap *own;
    mscope_result result = check(heap, &own);
    if (result != MSCOPE_OK || !own) return result;
    if (!block || !type || (uintptr_t)block & ~LIVE_KEY_MASK) return MSCOPE_BAD_ARGUMENT;
    uint64_t key = key_of(heap, block);
    uint32_t slot = atomic_load_explicit(filter_of(key), memory_order_relaxed)
                        ? address_index_find(&recorder.heap_index, key)
                        : INDEX_NONE;
    uint32_t stack;
    if (block_types_set(block, slot, own->number, name_table_note(&recorder.recording, type), &stack))
        return MSCOPE_OK;
    return rate_of(own) == 1 ? MSCOPE_UNKNOWN : MSCOPE_OK;
}
