#include "unwind/mapping_list.h"

#include <string.h>
#include <sys/auxv.h>

#include "core/module_table.h"
#include "platform/maps.h"
#include "platform/system.h"
#include "unwind/refresh_budget.h"
#include "unwind/unwind.h"

#define SNAPSHOTS       8  /* one is published, the others can be filled at the same time */
#define SETTLE_ATTEMPTS 64 /* an attempt fails only because other threads read the maps at the same time */

struct snapshot {
    _Atomic uint32_t busy; /* 1 = a thread fills it */
    _Atomic uint64_t count;
    uint64_t
        regions[GENERATION_REGIONS / 64]; /* bit set: where it differs from the snapshot that it replaces */
    struct maps_reader maps;
    _Alignas(8) uint8_t page[PAGE_SIZE_MIN];
    struct mapping mapping[MAPPINGS_MAX];
};

static struct {
    _Atomic uint64_t published; /* SNAPSHOTS × (publications so far) + (the snapshot's index) */
    struct refresh_budget budget;
    _Atomic uint64_t forks; /* how many forks lie between the first process and this one */
    unwind_note *note;
    struct snapshot snapshot[SNAPSHOTS];
} state;

_Atomic uint16_t mapping_list_generation[GENERATION_REGIONS];
struct mapping_list_closings mapping_list_closings;

/* ---- Reading ---- */

/* Snapshots are read while another thread may be filling them anew: all loads are relaxed, and count only if
 * still_published says so afterwards. */

static uint64_t count_of(const struct snapshot *snapshot) {
    uint64_t count = atomic_load_explicit(&snapshot->count, memory_order_relaxed);
    return count < MAPPINGS_MAX ? count : MAPPINGS_MAX;
}

static void mapping_load(struct mapping *target, const struct mapping *source) {
    for (unsigned i = 0; i < sizeof *target / sizeof(uint64_t); i++)
        ((uint64_t *)target)[i] = __atomic_load_n(&((const uint64_t *)source)[i], __ATOMIC_RELAXED);
}

static void mapping_store(struct mapping *target, const struct mapping *source) {
    for (unsigned i = 0; i < sizeof *target / sizeof(uint64_t); i++)
        __atomic_store_n(&((uint64_t *)target)[i], ((const uint64_t *)source)[i], __ATOMIC_RELAXED);
}

static bool snapshot_find(const struct snapshot *snapshot, uint64_t pc, struct mapping *ret_mapping) {
    uint64_t low = 0, count = count_of(snapshot), high = count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (__atomic_load_n(&snapshot->mapping[middle].end, __ATOMIC_RELAXED) <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == count) return false;
    mapping_load(ret_mapping, &snapshot->mapping[low]);
    return ret_mapping->start <= pc && pc < ret_mapping->end;
}

/* Whether all that was read of a published snapshot so far belongs to it. */
static bool still_published(uint64_t published) {
    /* Acquire fence: pairs with the release fence in snapshot_take. If a load before it saw a word of a later filling,
     * the load below sees a later `published`: a snapshot is taken for filling only after another one was published. */
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&state.published, memory_order_relaxed) == published;
}

static bool mapping_list_known(uint64_t pc, struct mapping *ret_mapping) {
    for (int attempt = 0; attempt < 4; attempt++) {
        /* Acquire: pairs with the release in refresh_publish, so the snapshot is seen filled. */
        uint64_t published = atomic_load_explicit(&state.published, memory_order_acquire);
        bool found = snapshot_find(&state.snapshot[published % SNAPSHOTS], pc, ret_mapping);
        if (still_published(published)) return found;
    }
    return false;
}

/* ---- Filling a snapshot ---- */

static void snapshot_release(struct snapshot *snapshot) {
    atomic_store_explicit(&snapshot->busy, 0, memory_order_release);
}

/* A snapshot to fill, or NULL if all are being filled. If a signal handler jumps out of the filling, the snapshot stays
 * busy for ever; that is why there are more than are needed. */
static struct snapshot *snapshot_take(void) {
    for (unsigned i = 0; i < SNAPSHOTS; i++) {
        struct snapshot *snapshot = &state.snapshot[i];
        if (atomic_exchange_explicit(&snapshot->busy, 1, memory_order_acquire) != 0) continue;
        /* Only the thread that has a snapshot can publish it. So if it is not published now, it stays unpublished. */
        if (atomic_load_explicit(&state.published, memory_order_acquire) % SNAPSHOTS != i) {
            /* Release fence: pairs with the acquire fence in still_published. A reader that sees a word which this
             * thread stores from here on also sees the value of `published` that was loaded above, or a later one. */
            atomic_thread_fence(memory_order_release);
            return snapshot;
        }
        snapshot_release(snapshot);
    }
    return NULL;
}

/* Whether a mapping is never unmapped: libc, this library, the vdso, the dynamic linker, the program. `base` is
 * where the first page of its file is mapped. */
static bool is_permanent(const struct maps_line *line, uint64_t base) {
    uint64_t inside[] = {
        (uint64_t)&getauxval, (uint64_t)&mapping_list_find, getauxval(AT_ENTRY), getauxval(AT_PHDR)};
    for (unsigned i = 0; i < sizeof inside / sizeof *inside; i++)
        if (line->start <= inside[i] && inside[i] < line->end) return true;
    return base == getauxval(AT_SYSINFO_EHDR) || base == getauxval(AT_BASE) ||
           getauxval(AT_PHDR) - base < PAGE_SIZE_MIN;
}

static bool same_mapping(const struct mapping *a, const struct mapping *b) {
    return a->start == b->start && a->end == b->end && a->base == b->base && a->device == b->device &&
           a->inode == b->inode && a->file_offset == b->file_offset;
}

static void mark_regions(struct snapshot *snapshot, const struct mapping *mapping) {
    uint64_t region = mapping->start >> 16, last = (mapping->end - 1) >> 16;
    if (last - region >= GENERATION_REGIONS) last = region + GENERATION_REGIONS - 1;
    for (; region <= last; region++)
        snapshot->regions[region % GENERATION_REGIONS / 64] |= UINT64_C(1) << region % 64;
}

enum refresh_mode {
    REFRESH_NEW,     /* read the headers of new mappings only */
    REFRESH_ALL,     /* read the headers of all mappings that can be unmapped */
    REFRESH_STARTUP, /* as REFRESH_NEW, and all mappings of files are permanent */
};

struct refresh {
    enum refresh_mode mode;
    struct snapshot *target;
    uint64_t published;   /* the snapshot to be replaced */
    uint64_t cursor;      /* index in that snapshot, which is sorted like the maps */
    struct mapping whole; /* the last permanent mapping that the cursor has passed */
};

/* A program may change the protection of a part of a permanent mapping, or move it to larger pages. The maps then show
 * that part as a mapping of its own. Whether `mapping` is such a part: it gets all that is known of the whole. */
static bool refresh_part(const struct refresh *refresh, struct mapping *mapping) {
    const struct mapping *whole = &refresh->whole;
    if (!whole->permanent || mapping->start < whole->start || mapping->end > whole->end) return false;
    uint64_t start = mapping->start, end = mapping->end;
    *mapping = *whole;
    mapping->start = start;
    mapping->end = end;
    return true;
}

static uint64_t note(const struct maps_line *line, const struct mapping *mapping) {
    struct mapped_code code = {.line = line,
        .base = mapping->base,
        .fingerprint = mapping->fingerprint,
        .permanent = mapping->permanent};
    return state.note ? state.note(&code) : MODULE_BY_ADDRESS;
}

/* Completes a mapping from the maps: by the former snapshot if that has the same mapping, else from the mapped
 * file. Marks the regions of mappings that have come, gone or changed. */
static void refresh_mapping(struct refresh *refresh, const struct maps_line *line, struct mapping *mapping) {
    const struct snapshot *former = &state.snapshot[refresh->published % SNAPSHOTS];
    struct mapping old = {0};
    bool known = false;
    for (; refresh->cursor < count_of(former); refresh->cursor++) {
        mapping_load(&old, &former->mapping[refresh->cursor]);
        if (old.start >= mapping->end) break;
        known = same_mapping(&old, mapping) && !old.unread && still_published(refresh->published);
        if (known) break;
        if (old.permanent && still_published(refresh->published)) refresh->whole = old;
        mark_regions(refresh->target, &old);
    }
    if (known) {
        *mapping = old;
        refresh->cursor++;
        if (refresh->mode == REFRESH_ALL && mapping->base && !mapping->permanent)
            mapping_read_headers(mapping, refresh->target->page);
        known = mapping->identity == old.identity && mapping->header == old.header &&
                mapping->fingerprint == old.fingerprint;
    } else if (refresh_part(refresh, mapping)) {
        mark_regions(refresh->target, mapping);
        return;
    } else {
        mapping->permanent =
            mapping->base && (refresh->mode == REFRESH_STARTUP || is_permanent(line, mapping->base));
        if (mapping->base) mapping_read_headers(mapping, refresh->target->page);
    }
    if (!known) mark_regions(refresh->target, mapping);
    if (!known || mapping->number == MODULE_NOT_NOTED) mapping->number = note(line, mapping);
}

static bool refresh_fill(struct refresh *refresh) {
    struct snapshot *target = refresh->target;
    struct maps_line line;
    uint64_t count = 0, base = 0, base_device = 0,
             base_inode = 0; /* the file whose first page was seen last */
    memset(target->regions, 0, sizeof target->regions);
    if (!maps_open(&target->maps)) return false;
    while (count < MAPPINGS_MAX && maps_next(&target->maps, &line)) {
        bool file = line.inode != 0 || line.vdso;
        if (file && line.readable && line.file_offset == 0) {
            base = line.start;
            base_device = line.device;
            base_inode = line.inode;
        }
        if (!line.executable) continue;
        struct mapping mapping = {.start = line.start,
            .end = line.end,
            .device = line.device,
            .inode = line.inode,
            .file_offset = line.file_offset};
        if (file && base_device == line.device && base_inode == line.inode) mapping.base = base;
        refresh_mapping(refresh, &line, &mapping);
        mapping_store(&target->mapping[count++], &mapping);
    }
    maps_close(&target->maps);
    if (target->maps.error) return false;

    const struct snapshot *former = &state.snapshot[refresh->published % SNAPSHOTS];
    for (; refresh->cursor < count_of(former); refresh->cursor++) {
        struct mapping old;
        mapping_load(&old, &former->mapping[refresh->cursor]);
        if (old.start < old.end) mark_regions(target, &old);
    }
    atomic_store_explicit(&target->count, count, memory_order_relaxed);
    return true;
}

static void change_generations(const struct snapshot *snapshot) {
    for (unsigned word = 0; word < GENERATION_REGIONS / 64; word++)
        for (uint64_t left = snapshot->regions[word]; left; left &= left - 1)
            atomic_fetch_add_explicit(&mapping_list_generation[word * 64 + (unsigned)__builtin_ctzll(left)],
                1, memory_order_release);
}

/* False if another refresh was published since this one began: `regions` was then made by comparison with a
 * snapshot that is no longer published, and the other refresh may be the newer one.
 *
 * The generations change twice. Before the publication: a thread that finds the new snapshot no longer finds rules
 * that were derived from the old one. After it: rules that were derived from the old one in between are not found
 * either. */
static bool refresh_publish(struct refresh *refresh) {
    uint64_t former = refresh->published;
    uint64_t next = (former / SNAPSHOTS + 1) * SNAPSHOTS + (uint64_t)(refresh->target - state.snapshot);
    change_generations(refresh->target);
    if (!atomic_compare_exchange_strong_explicit(
            &state.published, &former, next, memory_order_acq_rel, memory_order_relaxed))
        return false;
    change_generations(refresh->target);
    return true;
}

/* ---- Refreshing ---- */

struct refresh_result {
    bool done;      /* the maps were read */
    bool published; /* what was read is what all threads see now */
    bool news;      /* it differs from what was published before */
    bool found;     /* a mapping covers the pc */
};

/* Reads the maps. `pc` is looked up in what was read, also if another refresh was published first; 0 = no pc. */
static struct refresh_result refresh(enum refresh_mode mode, uint64_t pc, struct mapping *ret_mapping) {
    struct refresh refresh = {.mode = mode};
    struct refresh_result result = {0};
    refresh.published = atomic_load_explicit(&state.published, memory_order_acquire);
    refresh.target = snapshot_take();
    result.done = refresh.target && refresh_fill(&refresh);
    if (result.done) {
        for (unsigned i = 0; i < GENERATION_REGIONS / 64; i++) result.news |= refresh.target->regions[i] != 0;
        if (pc) result.found = snapshot_find(refresh.target, pc, ret_mapping);
    }
    result.published = result.done && refresh_publish(&refresh);
    if (refresh.target) snapshot_release(refresh.target);
    return result;
}

bool mapping_list_find(uint64_t pc, struct mapping *ret_mapping, bool *ret_certain) {
    *ret_certain = mapping_list_known(pc, ret_mapping);
    if (*ret_certain) return true;
    if (!refresh_budget_take(&state.budget)) return false;
    struct refresh_result result = refresh(REFRESH_NEW, pc, ret_mapping);
    if (result.found) refresh_budget_refill(&state.budget);
    *ret_certain = result.done;
    return result.found;
}

void mapping_list_distrust(void) {
    if (refresh_budget_take(&state.budget) && refresh(REFRESH_ALL, 0, NULL).news)
        refresh_budget_refill(&state.budget);
}

/* ---- Closings ---- */

/* Whether the first pages of all mappings that can be unmapped still are what the published snapshot says. Far cheaper
 * than to read the maps, and a little less certain. */
static bool all_are_there(void) {
    uint64_t published = atomic_load_explicit(&state.published, memory_order_acquire);
    const struct snapshot *snapshot = &state.snapshot[published % SNAPSHOTS];
    struct snapshot *room = snapshot_take();
    bool there = room != NULL;
    for (uint64_t i = 0; there && i < count_of(snapshot); i++) {
        struct mapping mapping;
        mapping_load(&mapping, &snapshot->mapping[i]);
        if (mapping.base && !mapping.permanent) there = mapping_is_there(&mapping, room->page);
    }
    if (room) snapshot_release(room);
    return there && still_published(published);
}

static void settled_at(uint64_t ended) {
    uint64_t settled = atomic_load_explicit(&mapping_list_closings.settled, memory_order_relaxed);
    while (settled < ended && !atomic_compare_exchange_weak_explicit(&mapping_list_closings.settled, &settled,
                                  ended, memory_order_acq_rel, memory_order_relaxed)) {
    }
}

/* While a closing is under way, the library's destructors may allocate a lot, and each of their stack walks comes
 * here. So first pages are compared (all_are_there), and the maps are read only if one has changed: no other
 * library takes the place before dlclose has unmapped this one.
 *
 * A refresh that another thread's refresh has overtaken does not count: the other may have begun before the closing
 * ended. */
void mapping_list_settle(void) {
    for (int attempt = 0; attempt < SETTLE_ATTEMPTS && !mapping_list_is_settled(); attempt++) {
        /* Acquire, and before the maps are read: a closing that ends meanwhile raises `count` above `ended`, and is
         * dealt with by a later walk. */
        uint64_t count = atomic_load_explicit(&mapping_list_closings.count, memory_order_acquire);
        uint64_t ended = count % CLOSING_UNDER_WAY;
        if (atomic_load_explicit(&mapping_list_closings.settled, memory_order_acquire) == ended &&
            all_are_there())
            return;
        if (!refresh(REFRESH_ALL, 0, NULL).published) continue;
        settled_at(ended);
        return;
    }
}

uint64_t unwind_closing_begin(void) {
    atomic_fetch_add_explicit(&mapping_list_closings.count, CLOSING_UNDER_WAY, memory_order_acq_rel);
    return atomic_load_explicit(&state.forks, memory_order_relaxed);
}

/* One addition, so that at no moment the closing is neither under way nor ended. If this process was forked while the
 * closing was under way, unwind_forked has already taken it off. */
void unwind_closing_end(uint64_t begun, bool unloaded) {
    bool forked = atomic_load_explicit(&state.forks, memory_order_relaxed) != begun;
    uint64_t change = (unloaded ? 1 : 0) - (forked ? 0 : CLOSING_UNDER_WAY);
    atomic_fetch_add_explicit(&mapping_list_closings.count, change, memory_order_acq_rel);
}

uint64_t unwind_epoch(void) {
    return mapping_list_is_settled() ? atomic_load_explicit(&state.published, memory_order_acquire) : 0;
}

/* ---- Beginning ---- */

void unwind_start(unwind_note *given, bool early) {
    state.note = given;
    refresh(early ? REFRESH_STARTUP : REFRESH_ALL, 0, NULL);
}

void unwind_forked(void) {
    /* The closings of the parent's other threads never end in the child: all are taken off. If the calling thread
     * is in one, it goes on, and unwind_closing_end sees by `forks` that it was taken off. Relaxed throughout: the
     * child has one thread. */
    atomic_fetch_add_explicit(&state.forks, 1, memory_order_relaxed);
    uint64_t count = atomic_load_explicit(&mapping_list_closings.count, memory_order_relaxed);
    atomic_store_explicit(&mapping_list_closings.count, count % CLOSING_UNDER_WAY, memory_order_relaxed);
    for (unsigned i = 0; i < SNAPSHOTS; i++) { /* the threads that were filling them are not in the child */
        struct snapshot *snapshot = &state.snapshot[i];
        if (!atomic_load_explicit(&snapshot->busy, memory_order_relaxed)) continue;
        maps_close(&snapshot->maps);
        snapshot_release(snapshot);
    }
}
