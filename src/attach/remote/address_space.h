/* The executable mappings of another process, sorted by address.
 *
 * One that was unmapped stays known until something else takes its place: stacks that were copied before are
 * still to be walked, and reports are to name what was closed. */
#ifndef MALLOSCOPE_ATTACH_REMOTE_ADDRESS_SPACE_H
#define MALLOSCOPE_ATTACH_REMOTE_ADDRESS_SPACE_H

#include "attach/remote/module_bytes.h"
#include "attach/remote/remote_rule_cache.h"

struct address_space_entry {
    struct remote_module module;
    struct maps_line line; /* its path is the entry's own */
    uint64_t base;         /* where the file's first page is mapped; 0 = nowhere, or it is no file */
    unsigned reopened;     /* times */
    struct module_bytes bytes;
};

struct address_space {
    struct address_space_entry **entry;
    uint32_t count;
    uint64_t newest; /* the greatest number of a module */
};

/* Reads the maps. Rules of what is no longer there are taken out of `rules`. Returns 0 or a negative errno,
 * and leaves the space as it was then; -ENODATA if nothing at all is mapped: the process has ended. */
int address_space_refresh(struct address_space *address_space, const struct remote_process *process,
    struct remote_rule_cache *rules);

/* The entry that covers an address, or NULL. */
struct address_space_entry *address_space_find(const struct address_space *address_space, uint64_t address);

/* Opens an entry's bytes again: its content is not what it was. */
void address_space_reopen(struct address_space_entry *entry, struct remote_rule_cache *rules);

void address_space_free(struct address_space *address_space);

#endif
