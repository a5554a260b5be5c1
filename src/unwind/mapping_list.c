#include "unwind/mapping_list.h"

#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#include "platform/maps.h"
#include "platform/system.h"
#include "unwind/unwind.h"

#define SNAPSHOTS           8  /* one is published, the others can be filled at the same time */
#define SETTLE_ATTEMPTS     64 /* each fails only because others are at the same */
#define VAIN_REFRESHES_MAX  32 /* refreshes that may find nothing new in a row ... */
#define VAIN_REFRESH_PERIOD 50 /* ... and after how many milliseconds one more is granted */

struct snapshot {
    _Atomic uint32_t busy; /* 1 = somebody fills it */
    _Atomic uint64_t count;
    uint64_t regions[GENERATION_REGIONS / 64]; /* bit set: where this one differs from the one it replaces */
    struct maps_reader maps;
    uint8_t page[PAGE_SIZE_MIN];
    struct mapping mapping[MAPPINGS_MAX];
};

static struct {
    _Atomic uint64_t published; /* a running number, times SNAPSHOTS, plus which one */
    _Atomic uint64_t vain, vain_since;
    _Atomic uint64_t forks; /* how many lie between this process and the first one */
    unwind_note *note;
    struct snapshot snapshot[SNAPSHOTS];
} state;

_Atomic uint16_t mapping_list_generation[GENERATION_REGIONS];
struct mapping_list_closings mapping_list_closings;

/* ---- Reading ---- */

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

/* Whether what was read of a published snapshot until now was not overwritten meanwhile. */
static bool still_published(uint64_t published) {
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&state.published, memory_order_relaxed) == published;
}

static bool mapping_list_known(uint64_t pc, struct mapping *ret_mapping) {
    for (int attempt = 0; attempt < 4; attempt++) {
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

/* NULL if all are being filled. One whose filling never ends, because a signal handler jumped away from it,
 * is lost; that is why there are more than it takes. */
static struct snapshot *snapshot_take(void) {
    for (unsigned i = 0; i < SNAPSHOTS; i++) {
        struct snapshot *snapshot = &state.snapshot[i];
        if (atomic_exchange_explicit(&snapshot->busy, 1, memory_order_acquire) != 0) continue;
        /* Only who fills it can publish it: if it is not published now, it will not be. */
        if (atomic_load_explicit(&state.published, memory_order_acquire) % SNAPSHOTS != i) return snapshot;
        snapshot_release(snapshot);
    }
    return NULL;
}

/* Whether a mapping belongs to something that is never unloaded. `base` is that of its file. */
static bool is_permanent(const struct maps_line *line, uint64_t base) {
    uint64_t inside[] = {(uint64_t)&getauxval, (uint64_t)&mapping_list_find};
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

enum refresh_mode { REFRESH_NEW, REFRESH_ALL, REFRESH_STARTUP };

struct refresh {
    enum refresh_mode mode;
    struct snapshot *target;
    uint64_t published;   /* the one to be replaced */
    uint64_t cursor;      /* in that one, which is sorted as well */
    struct mapping whole; /* the permanent one that was passed last in it */
};

/* What is mapped for good stays what it was where the program changes its protection or moves it to larger
 * pages. */
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
    return state.note ? state.note(&code) : UNWIND_BY_ADDRESS;
}

/* Completes a mapping from the maps by what the former snapshot or the mapping itself says of it, and marks
 * what was elsewhere or otherwise. */
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
    if (!known || mapping->number == UNWIND_NOT_NOTED) mapping->number = note(line, mapping);
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
    if (target->maps.failed) return false;

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

/* Fails if another refresh was published since this one began: then what the regions were compared with is
 * gone, and the other may be the newer one. The generations change before the publication, so that who finds
 * the new snapshot finds nothing that was derived from the old one, and after it, so that nothing stays that
 * was derived from the old one in between. */
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
    bool published; /* and are what everybody sees now */
    bool news;      /* they were not as before */
    bool found;     /* the pc is covered */
};

/* `pc` is looked up in what was read, also if that was overtaken by another refresh; 0 = nothing is. */
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

static uint64_t milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* One of a limited number, so that jumps into nowhere do not make every capture read the maps. */
static bool vain_refresh_granted(void) {
    uint64_t now = milliseconds(), since = atomic_load_explicit(&state.vain_since, memory_order_relaxed);
    uint64_t vain = atomic_load_explicit(&state.vain, memory_order_relaxed);
    uint64_t granted = now > since ? (now - since) / VAIN_REFRESH_PERIOD : 0;
    if (granted) {
        vain -= granted < vain ? granted : vain;
        atomic_store_explicit(&state.vain_since, now, memory_order_relaxed);
    }
    bool allowed = vain < VAIN_REFRESHES_MAX;
    atomic_store_explicit(&state.vain, vain + allowed, memory_order_relaxed);
    return allowed;
}

static void vain_refresh_forgiven(void) {
    atomic_store_explicit(&state.vain, 0, memory_order_relaxed);
}

bool mapping_list_find(uint64_t pc, struct mapping *ret_mapping, bool *ret_certain) {
    *ret_certain = mapping_list_known(pc, ret_mapping);
    if (*ret_certain) return true;
    if (!vain_refresh_granted()) return false;
    struct refresh_result result = refresh(REFRESH_NEW, pc, ret_mapping);
    if (result.found) vain_refresh_forgiven();
    *ret_certain = result.done;
    return result.found;
}

void mapping_list_distrust(void) {
    if (vain_refresh_granted() && refresh(REFRESH_ALL, 0, NULL).news) vain_refresh_forgiven();
}

/* ---- Closings ---- */

/* Whether all modules that can be closed still look as the published snapshot says: far cheaper than to read
 * the maps, and a little less certain. */
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

/* While a closing is under way the library's destructors may allocate a lot: its place is not taken by
 * another before dlclose is about to return. A refresh that is overtaken by another thread's does not count:
 * that one may have begun before the closing ended. */
void mapping_list_settle(void) {
    for (int attempt = 0; attempt < SETTLE_ATTEMPTS && !mapping_list_is_settled(); attempt++) {
        /* Before anything is read, so that a closing that ends meanwhile is not lost. */
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

/* One addition: there is no moment in which it is neither under way nor ended. */
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
    /* Other threads' closings never end here. Should the calling one be in a closing, that goes on. */
    atomic_fetch_add_explicit(&state.forks, 1, memory_order_relaxed);
    uint64_t count = atomic_load_explicit(&mapping_list_closings.count, memory_order_relaxed);
    atomic_store_explicit(&mapping_list_closings.count, count % CLOSING_UNDER_WAY, memory_order_relaxed);
    for (unsigned i = 0; i < SNAPSHOTS; i++) {
        struct snapshot *snapshot = &state.snapshot[i];
        if (!atomic_load_explicit(&snapshot->busy, memory_order_relaxed)) continue;
        maps_close(&snapshot->maps);
        snapshot_release(snapshot);
    }
}
