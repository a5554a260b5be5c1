/* Stacks of another process, from copies of its registers and of its stack. README.md lists the files behind this
 * door.
 *
 * The kernel side of `attach` copies registers and stack at the moment of an allocation. The tool walks the copy
 * later, with the rules of unwind/ (`rule_evaluate`). Nothing is asked of the process: its memory map is read from
 * /proc, and the unwind information from the files that are mapped. So stacks can still be walked after the process
 * has ended.
 *
 * Files, memory and stacks are untrusted: they may be damaged, cut short or changed at any moment. What makes no
 * sense ends a walk. A `struct remote` may be used by one thread at a time. */
#ifndef MALLOSCOPE_ATTACH_REMOTE_REMOTE_H
#define MALLOSCOPE_ATTACH_REMOTE_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/recording.h"
#include "unwind/unwind.h"

struct remote;

/* Returns 0 or a negative errno: -ESRCH, there is no such process; -ENODATA, it has no memory of its own (it is a
 * kernel thread, or has ended); -ENOEXEC, it is not a 64-bit program for this machine; -EACCES, it may not be
 * inspected. */
int remote_open(int pid, struct remote **ret_remote);
void remote_close(struct remote *remote);

/* How a stack walk ended. */
enum remote_end {
    REMOTE_COMPLETE, /* at the start of the thread */
    REMOTE_LOST,     /* at a frame whose caller cannot be found */
    REMOTE_SHORT,    /* at the end of the copy: the rest of the stack was not copied */
};

/* Walks a copied stack. `stack` is a copy of the `stack_size` bytes from `registers->sp` on; it need not be
 * aligned. The frames are those that unwind_capture would store (unwind.h), as plain addresses. If the copy was too
 * short, the last word is FRAME_CUT.
 *
 * A return probe on an outer function makes the kernel replace its return address by one in "[uprobes]". Such an
 * address ends the walk as lost, unless the caller has put the true one back into the copy. */
uint32_t remote_unwind(struct remote *remote, const struct unwind_registers *registers, const void *stack,
    uint32_t stack_size, uint64_t *frames, uint32_t max, enum remote_end *ret_end);

/* If the last walk was complete: the address at which its outermost frame ends. */
uint64_t remote_stack_end(const struct remote *remote);

/* Reads the memory map now. To be called when the process has opened or closed a library, or has executed another
 * program. A walk that comes to an address which no mapping covers also reads it, a limited number of times
 * (refresh_budget.h). Returns 0 or a negative errno; on failure all that was known stays known. */
int remote_refresh(struct remote *remote);

/* ---- Modules: the executable mappings, as the collector records them ---- */

struct remote_module {
    uint64_t number;     /* 1, 2, 3... in the order in which they were noticed; a number is never used again */
    uint64_t start, end; /* addresses */
    uint64_t file_offset;
    uint64_t inode;
    uint32_t device_major, device_minor;
    const char *path; /* as /proc/PID/maps shows it: a path in the process's view of the files, "[vdso]", or "" */
    bool mapped;      /* false = unmapped since, and known until something else takes its place */
    uint8_t build_id_size;
    uint8_t build_id[sizeof((struct module_record *)0)->build_id];
};

/* Sorted by address. A pointer is good until the next call that takes a `struct remote *` which is not const. */
uint32_t remote_module_count(const struct remote *remote);
const struct remote_module *remote_module_at(const struct remote *remote, uint32_t index);

/* The module as a recording holds it, but without path and time, which the collector fills in. */
struct module_record remote_module_record(const struct remote_module *module);

/* The greatest number of a module so far. If it has grown, there are modules that the collector has not recorded
 * yet. */
uint64_t remote_newest_module(const struct remote *remote);

/* ---- Statistics ---- */

struct remote_figures {
    uint64_t rules;             /* rules evaluated, because the cache did not hold them */
    uint64_t refreshes;         /* readings of the memory map */
    uint64_t refreshes_refused; /* readings that the budget refused: a stack ended there */
};

struct remote_figures remote_figures(const struct remote *remote);

#endif
