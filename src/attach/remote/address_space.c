#include "attach/remote/address_space.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define UNMAPPED_MAX 1024 /* that are kept */

/* The first entry that ends behind an address; `count` if there is none. */
static uint32_t first_behind(const struct space *space, uint64_t address) {
    uint32_t low = 0, high = space->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (space->entry[middle]->line.end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct space_entry *address_space_find(const struct space *space, uint64_t address) {
    uint32_t found = first_behind(space, address);
    return found < space->count && space->entry[found]->line.start <= address ? space->entry[found] : NULL;
}

/* Whether something covers a part of the line's addresses. */
static bool space_overlaps(const struct space *space, const struct maps_line *line) {
    uint32_t found = first_behind(space, line->start);
    return found < space->count && space->entry[found]->line.start < line->end;
}

/* ---- Entries ---- */

/* `line` with a path of its own is taken over. */
static struct space_entry *entry_make(const struct maps_line *line, uint64_t base) {
    struct space_entry *entry = memory_allocate(sizeof *entry);
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

static void entry_free(struct space_entry *entry) {
    if (!entry) return;
    module_bytes_close(&entry->image);
    free((char *)entry->line.path);
    free(entry);
}

/* A file's name does not matter: it changes when the file is deleted. */
static bool entry_same(const struct space_entry *a, const struct space_entry *b) {
    return a->line.start == b->line.start && a->line.end == b->line.end && a->base == b->base &&
           a->line.device == b->line.device && a->line.inode == b->line.inode &&
           a->line.file_offset == b->line.file_offset &&
           (a->line.inode || strcmp(a->line.path, b->line.path) == 0);
}

void address_space_reopen(struct space_entry *entry, struct rules *rules) {
    for (struct rules_set *set = rules->set; set < rules->set + RULES_SETS; set++)
        for (unsigned i = 0; i < 2; i++)
            if (set->entry[i].pc - entry->line.start < entry->line.end - entry->line.start)
                set->entry[i].pc = 0;
    module_bytes_close(&entry->image);
    entry->reopened++;
    module_bytes_open(&entry->image, entry->image.process, &entry->line, entry->base, &entry->module);
}

/* ---- Reading the maps ---- */

static void space_append(struct space *space, struct space_entry *entry) {
    if ((space->count & (space->count - 1)) == 0) /* full at powers of two */
        space->entry =
            memory_reallocate(space->entry, (space->count ? 2 * space->count : 1) * sizeof *space->entry);
    space->entry[space->count++] = entry;
}

void address_space_free(struct space *space) {
    for (uint32_t i = 0; i < space->count; i++) entry_free(space->entry[i]);
    free(space->entry);
    *space = (struct space){0};
}

/* Notes what is executable. Nothing is opened yet. */
static int space_read(struct space *space, const struct remote_process *process) {
    int file = openat(process->folder, "maps", O_RDONLY | O_CLOEXEC);
    if (file < 0) return -errno;
    struct maps_reader reader = {.file_plus_one = file + 1};
    struct maps_line line, first_page = {0}; /* of the file that was seen last */
    uint64_t end = 0;
    while (maps_next(&reader, &line)) {
        if (line.start < end) continue; /* it changed while it was being read */
        end = line.end;
        bool is_file = line.inode != 0 || line.vdso;
        if (is_file && line.readable && line.file_offset == 0) first_page = line;
        if (!line.executable) continue;
        bool same_file = is_file && first_page.device == line.device && first_page.inode == line.inode;
        line.path = memory_copy_text(line.path);
        space_append(space, entry_make(&line, same_file ? first_page.start : 0));
    }
    maps_close(&reader);
    if (reader.failed) return -ESRCH;
    return end ? 0 : -ENODATA;
}

static int by_start(const void *left, const void *right) {
    const struct space_entry *a = *(struct space_entry *const *)left,
                             *b = *(struct space_entry *const *)right;
    return (a->line.start > b->line.start) - (a->line.start < b->line.start);
}

/* Puts what is known already in the place of what was read again, and opens the rest. Both are sorted. */
static void space_take_known(struct space *fresh, struct space *known, const struct remote_process *process) {
    for (uint32_t i = 0, next = 0; i < fresh->count; i++) {
        struct space_entry *entry = fresh->entry[i];
        while (next < known->count && known->entry[next]->line.start < entry->line.start) next++;
        if (next < known->count && entry_same(known->entry[next], entry)) {
            entry_free(entry);
            fresh->entry[i] = known->entry[next];
            fresh->entry[i]->module.mapped = true;
            known->entry[next++] = NULL;
        } else {
            entry->module.number = ++fresh->newest;
            module_bytes_open(&entry->image, process, &entry->line, entry->base, &entry->module);
        }
    }
}

/* Leaves of `known` what is unmapped but may stay. Returns whether that is not all. */
static bool space_drop_replaced(struct space *known, const struct space *fresh) {
    uint32_t unmapped = 0, kept = 0;
    for (uint32_t i = 0; i < known->count; i++) unmapped += known->entry[i] != NULL;
    for (uint32_t i = 0; i < known->count; i++) {
        struct space_entry *entry = known->entry[i];
        if (!entry) continue;
        if (unmapped > UNMAPPED_MAX || space_overlaps(fresh, &entry->line)) {
            entry_free(entry);
        } else {
            entry->module.mapped = false;
            known->entry[kept++] = entry;
        }
    }
    known->count = kept;
    return kept < unmapped;
}

/* Takes out the rules of addresses that another module covers now, or none. */
static void forget_replaced(struct rules *rules, const struct space *space, uint64_t newest_before) {
    for (struct rules_set *set = rules->set; set < rules->set + RULES_SETS; set++)
        for (unsigned i = 0; i < 2; i++) {
            if (set->entry[i].pc == 0) continue;
            const struct space_entry *entry = address_space_find(space, set->entry[i].pc);
            if (!entry || entry->module.number > newest_before) set->entry[i].pc = 0;
        }
}

int address_space_refresh(struct space *space, const struct remote_process *process, struct rules *rules) {
    struct space fresh = {.newest = space->newest};
    int r = space_read(&fresh, process);
    if (r < 0) {
        address_space_free(&fresh);
        return r;
    }
    space_take_known(&fresh, space, process);
    bool dropped = space_drop_replaced(space, &fresh);
    for (uint32_t i = 0; i < space->count; i++) space_append(&fresh, space->entry[i]);
    if (fresh.count) qsort(fresh.entry, fresh.count, sizeof *fresh.entry, by_start);
    if (dropped) forget_replaced(rules, &fresh, space->newest);
    free(space->entry);
    *space = fresh;
    return 0;
}
