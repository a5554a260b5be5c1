/* The bytes of one executable mapping of another process: code and unwind information, for rule_evaluate.
 *
 * They come from the mapped file, which is mapped into the tool as well. It is read by a system call that fails
 * where a load would fault, since the file may be cut short at any time. The vdso, generated code and files that
 * cannot be opened are read from the memory of the process, for as long as it exists. */
#ifndef MALLOSCOPE_ATTACH_REMOTE_MODULE_BYTES_H
#define MALLOSCOPE_ATTACH_REMOTE_MODULE_BYTES_H

#include <elf.h>

#include "attach/remote/remote.h"
#include "platform/maps.h"
#include "unwind/mapping.h"

/* Descriptors by which another process is read; -1 = not available. */
struct remote_process {
    int folder; /* /proc/PID. It stays this process's folder, also when the kernel gives its PID to another process */
    int memory; /* /proc/PID/mem */
};

/* Reads `size` bytes at `offset`. False if it got less. */
bool module_bytes_read_at(int descriptor, void *target, uint64_t size, uint64_t offset);

/* A range of addresses of the process, and where its bytes are in the tool. */
struct module_bytes_part {
    uint64_t low, high;
    const uint8_t *bytes;
    void *pages; /* what was mapped for it, in whole pages; NULL = the part is not used */
    uint64_t pages_size;
    bool owned; /* private memory of the tool, which never faults: may be read directly */
};

enum { PART_UNWIND, PART_CODE, PART_INDEX, PARTS };

struct module_bytes {
    struct mapping mapping; /* must come first: its `reader` gets this address and finds the rest behind it */
    const struct remote_process *process;
    struct module_bytes_part part[PARTS];
};

/* Opens the bytes of a mapping. `base` is where the file's first page is mapped, 0 = nowhere. Also fills in the
 * build-id of `module`. Cannot fail: a mapping that cannot be read has no unwind information. `bytes` must not be
 * moved while it is open. */
void module_bytes_open(struct module_bytes *bytes, const struct remote_process *process,
    const struct maps_line *line, uint64_t base, struct remote_module *module);
void module_bytes_close(struct module_bytes *bytes);

/* Gives a part `size` bytes of private memory, which stand for the addresses from `low` on. NULL if there is no
 * memory. */
uint8_t *module_bytes_own_part(struct module_bytes_part *part, uint64_t low, uint64_t size);

/* Whether a file is a 64-bit one for the machine that this tool was built for. */
bool module_bytes_machine_fits(const Elf64_Ehdr *elf);

#endif
