/* The bytes of one module of another process, readable here.
 *
 * Unwind information and code come from the file, which is mapped into the tool and read by a system call
 * that fails where a load would fault: the file may be cut short at any time. What is in no file (the vdso,
 * generated code) or in none that can be opened is read from the process's memory for as long as there is
 * one. */
#ifndef MALLOSCOPE_ATTACH_REMOTE_MODULE_BYTES_H
#define MALLOSCOPE_ATTACH_REMOTE_MODULE_BYTES_H

#include <elf.h>

#include "attach/remote/remote.h"
#include "platform/maps.h"
#include "unwind/mapping.h"

/* Where to read another process: descriptors, -1 = not available. */
struct remote_process {
    int folder; /* /proc/PID, which stays that process's also when the number is given to another one */
    int memory; /* its mem */
};

/* Reads all of it or says no. */
bool module_bytes_read_at(int descriptor, void *target, uint64_t size, uint64_t offset);

/* A range of the module's addresses and where its bytes are here. */
struct module_bytes_part {
    uint64_t low, high;
    const uint8_t *bytes;
    void *pages; /* the pages around it; NULL = unused */
    uint64_t pages_size;
    bool owned; /* a private copy: may be read directly */
};

enum { PART_UNWIND, PART_CODE, PART_INDEX, PARTS };

struct module_bytes {
    struct mapping mapping; /* for rule_evaluate. Comes first: its reader is given this address */
    const struct remote_process *process;
    struct module_bytes_part part[PARTS];
};

/* `base` is where the file's first page is mapped, 0 = nowhere. Fills in the build-id of `module` too. An
 * bytes of which nothing can be read is one without unwind information. It must stay where it is. */
void module_bytes_open(struct module_bytes *bytes, const struct remote_process *process,
    const struct maps_line *line, uint64_t base, struct remote_module *module);
void module_bytes_close(struct module_bytes *bytes);

/* Gives a part `size` bytes of private memory for the addresses from `low` on. NULL if there is none. */
uint8_t *module_bytes_own_part(struct module_bytes_part *part, uint64_t low, uint64_t size);

/* Whether it is a 64-bit file for the machine that this was built for. */
bool module_bytes_machine_fits(const Elf64_Ehdr *elf);

#endif
