/* The executable mappings of another process, sorted by address.
 *
 * A mapping that was unmapped stays known until something else takes its place: stacks that were copied before are
 * still to be walked, and reports are to name libraries that were closed. At most UNMAPPED_MAX unmapped ones are
 * kept (address_space.c): beyond that, all of them are forgotten. */
#ifndef MALLOSCOPE_ATTACH_REMOTE_ADDRESS_SPACE_H
#define MALLOSCOPE_ATTACH_REMOTE_ADDRESS_SPACE_H

#include "attach/remote/module_bytes.h"
#include "attach/remote/remote_rule_cache.h"

struct address_space_entry {
    struct remote_module module; /* what the tool is told of it */
    struct maps_line line;       /* its line in /proc/PID/maps; `path` is a copy that the entry owns */
    uint64_t base;               /* where the file's first page is mapped; 0 = nowhere, or it is not a file */
    unsigned reopened;           /* how often its content turned out to have changed */
    struct module_bytes bytes;
};

struct address_space {
    struct address_space_entry **entry;
    uint32_t count;
    uint64_t newest; /* the greatest number of a module */
};

/* Reads the maps again. Rules of addresses that another mapping covers now, or none, are taken out of `rules`.
 * Returns 0 or a negative errno; on failure the address space stays as it was. -ENODATA: nothing is mapped, the
 * process has ended. */
int address_space_refresh(struct address_space *address_space, const struct remote_process *process,
    struct remote_rule_cache *rules);

/* The entry that covers an address, or NULL. */
struct address_space_entry *address_space_find(const struct address_space *address_space, uint64_t address);

/* Opens an entry's bytes again, because its content is not what it was. Takes its rules out of `rules`. */
void address_space_reopen(struct address_space_entry *entry, struct remote_rule_cache *rules);

void address_space_free(struct address_space *address_space);

#endif
