#include "attach/remote/address_space.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define UNMAPPED_MAX 1024 /* unmapped entries that are kept */

/* The index of the first entry that ends above an address; `count` if there is none. */
static uint32_t first_behind(const struct address_space *address_space, uint64_t address) {
    uint32_t low = 0, high = address_space->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (address_space->entry[middle]->line.end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct address_space_entry *address_space_find(const struct address_space *address_space, uint64_t address) {
    uint32_t found = first_behind(address_space, address);
    return found < address_space->count && address_space->entry[found]->line.start <= address
               ? address_space->entry[found]
               : NULL;
}

/* Whether an entry covers a part of the line's addresses. */
static bool overlaps(const struct address_space *address_space, const struct maps_line *line) {
    uint32_t found = first_behind(address_space, line->start);
    return found < address_space->count && address_space->entry[found]->line.start < line->end;
}

/* ---- Entries ---- */

/* The entry takes over line->path, which must be on the heap. */
static struct address_space_entry *entry_make(const struct maps_line *line, uint64_t base) {
    struct address_space_entry *entry = memory_allocate(sizeof *entry);
    entry->line = *line;
    entry->base = base;
    entry->module = (struct remote_module){.start = line->start,
        .end = line->end,
        .file_offset = line->file_offset,
        .inode = line->inode,
        .device_major = (uint32_t)(line->device >> 32),
        .device_minor = (uint32_t)line->device,
        .path = line->path,
        .mapped = true};
    return entry;
}

static void entry_free(struct address_space_entry *entry) {
    if (!entry) return;
    module_bytes_close(&entry->bytes);
    free((char *)entry->line.path);
    free(entry);
}

/* Whether two entries are the same mapping of the same file. A file's path does not count, since /proc adds "
 * (deleted)" to it when the file is deleted. Mappings without a file are told apart by their names, such as
 * "[vdso]". */
static bool entry_same(const struct address_space_entry *a, const struct address_space_entry *b) {
    return a->line.start == b->line.start && a->line.end == b->line.end && a->base == b->base &&
           a->line.device == b->line.device && a->line.inode == b->line.inode &&
           a->line.file_offset == b->line.file_offset &&
           (a->line.inode || strcmp(a->line.path, b->line.path) == 0);
}

void address_space_reopen(struct address_space_entry *entry, struct remote_rule_cache *rules) {
    for (struct remote_rule_cache_set *set = rules->set; set < rules->set + REMOTE_RULE_CACHE_SETS; set++)
        for (unsigned i = 0; i < 2; i++)
            if (set->entry[i].pc - entry->line.start < entry->line.end - entry->line.start)
                set->entry[i].pc = 0;
    module_bytes_close(&entry->bytes);
    entry->reopened++;
    module_bytes_open(&entry->bytes, entry->bytes.process, &entry->line, entry->base, &entry->module);
}

/* ---- Reading the maps ---- */

static void append(struct address_space *address_space, struct address_space_entry *entry) {
    if ((address_space->count & (address_space->count - 1)) == 0) /* full at powers of two */
        address_space->entry = memory_reallocate(address_space->entry,
            (address_space->count ? 2 * address_space->count : 1) * sizeof *address_space->entry);
    address_space->entry[address_space->count++] = entry;
}

void address_space_free(struct address_space *address_space) {
    for (uint32_t i = 0; i < address_space->count; i++) entry_free(address_space->entry[i]);
    free(address_space->entry);
    *address_space = (struct address_space){0};
}

/* Fills an empty address space with the executable mappings. Their bytes are not opened yet. */
static int read_maps(struct address_space *address_space, const struct remote_process *process) {
    int file = openat(process->folder, "maps", O_RDONLY | O_CLOEXEC);
    if (file < 0) return -errno;
    struct maps_reader reader = {.file_plus_one = file + 1};
    struct maps_line line, first_page = {0}; /* of the file that was seen last */
    uint64_t end = 0;
    while (maps_next(&reader, &line)) {
        if (line.start < end) continue; /* the maps changed while they were being read */
        end = line.end;
        bool is_file = line.inode != 0 || line.vdso;
        if (is_file && line.readable && line.file_offset == 0) first_page = line;
        if (!line.executable) continue;
        bool same_file = is_file && first_page.device == line.device && first_page.inode == line.inode;
        line.path = memory_copy_text(line.path);
        append(address_space, entry_make(&line, same_file ? first_page.start : 0));
    }
    maps_close(&reader);
    if (reader.error) return -ESRCH;
    return end ? 0 : -ENODATA;
}

static int by_start(const void *left, const void *right) {
    const struct address_space_entry *a = *(struct address_space_entry *const *)left,
                                     *b = *(struct address_space_entry *const *)right;
    return (a->line.start > b->line.start) - (a->line.start < b->line.start);
}

/* Replaces entries of `fresh` by the entries of `known` that are the same mapping, and opens the bytes of the
 * others. An entry that was taken leaves NULL in `known`. Both are sorted. */
static void take_known(
    struct address_space *fresh, struct address_space *known, const struct remote_process *process) {
    for (uint32_t i = 0, next = 0; i < fresh->count; i++) {
        struct address_space_entry *entry = fresh->entry[i];
        while (next < known->count && known->entry[next]->line.start < entry->line.start) next++;
        if (next < known->count && entry_same(known->entry[next], entry)) {
            entry_free(entry);
            fresh->entry[i] = known->entry[next];
            fresh->entry[i]->module.mapped = true;
            known->entry[next++] = NULL;
        } else {
            entry->module.number = ++fresh->newest;
            module_bytes_open(&entry->bytes, process, &entry->line, entry->base, &entry->module);
        }
    }
}

/* What is left in `known` is unmapped. Frees the entries whose addresses `fresh` covers, or all if they are more than
 * UNMAPPED_MAX; the others stay. Whether any was freed. */
static bool drop_replaced(struct address_space *known, const struct address_space *fresh) {
    uint32_t unmapped = 0, kept = 0;
    for (uint32_t i = 0; i < known->count; i++) unmapped += known->entry[i] != NULL;
    for (uint32_t i = 0; i < known->count; i++) {
        struct address_space_entry *entry = known->entry[i];
        if (!entry) continue;
        if (unmapped > UNMAPPED_MAX || overlaps(fresh, &entry->line)) {
            entry_free(entry);
        } else {
            entry->module.mapped = false;
            known->entry[kept++] = entry;
        }
    }
    known->count = kept;
    return kept < unmapped;
}

/* Takes out the rules of addresses that no mapping covers any more, or one that has come since number
 * `newest_before`. */
static void forget_replaced(
    struct remote_rule_cache *rules, const struct address_space *address_space, uint64_t newest_before) {
    for (struct remote_rule_cache_set *set = rules->set; set < rules->set + REMOTE_RULE_CACHE_SETS; set++)
        for (unsigned i = 0; i < 2; i++) {
            if (set->entry[i].pc == 0) continue;
            const struct address_space_entry *entry = address_space_find(address_space, set->entry[i].pc);
            if (!entry || entry->module.number > newest_before) set->entry[i].pc = 0;
        }
}

int address_space_refresh(struct address_space *address_space, const struct remote_process *process,
    struct remote_rule_cache *rules) {
    struct address_space fresh = {.newest = address_space->newest};
    int r = read_maps(&fresh, process);
    if (r < 0) {
        address_space_free(&fresh);
        return r;
    }
    take_known(&fresh, address_space, process);
    bool dropped = drop_replaced(address_space, &fresh);
    for (uint32_t i = 0; i < address_space->count; i++) append(&fresh, address_space->entry[i]);
    if (fresh.count) qsort(fresh.entry, fresh.count, sizeof *fresh.entry, by_start);
    if (dropped) forget_replaced(rules, &fresh, address_space->newest);
    free(address_space->entry);
    *address_space = fresh;
    return 0;
}
