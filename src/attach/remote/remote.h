/* Stacks of another process, from copies of its registers and of its stack.
 *
 * The kernel side of `attach` copies both at the moment of an allocation; here they are walked later, with
 * the rules of unwind/ (`rule_evaluate`). Nothing is asked of the process: its memory map is read from /proc,
 * and the unwind information from the files that are mapped, so stacks can still be walked after it has
 * ended.
 *
 *     remote.c        the process: opened, its modules kept up to date
 *     remote_walk.c          the walk: look up the rule of a pc, apply it, repeat
 *     known_rules.h         pc → rule, of this process
 *     address_space.c         which modules there are, from /proc/PID/maps
 *     module_bytes.c         the bytes of one module: from its file, or from the process's memory
 *     frame_index.c   a search table for files that come without one (statically linked ones)
 *
 * Files, memory and stacks are untrusted: they may be damaged, cut short or changed at any moment. What makes
 * no sense ends a walk. A `struct remote` is used by one thread at a time. */
#ifndef MALLOSCOPE_ATTACH_REMOTE_REMOTE_H
#define MALLOSCOPE_ATTACH_REMOTE_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/recording.h"
#include "unwind/unwind.h"

struct remote;

/* Returns 0 or a negative errno: -ESRCH there is no such process; -ENODATA it has no memory of its own (a
 * kernel thread, or it has ended); -ENOEXEC it is not a 64-bit program of this machine's kind; -EACCES it may
 * not be inspected. */
int remote_open(int pid, struct remote **ret_remote);
void remote_close(struct remote *remote);

/* How a walk ended. */
enum remote_end {
    REMOTE_COMPLETE, /* at the start of the thread */
    REMOTE_LOST,     /* at something that leads no further */
    REMOTE_SHORT,    /* at the end of the copy: the stack goes on where nothing was copied */
};

/* Walks a copied stack. `stack` is a copy of the `stack_size` bytes from `registers->sp` on; it need not be
 * aligned. Frames are as unwind_capture gives them: at most `max` words into `frames`, leaf first, frames[0]
 * is `registers->pc`, a pc that was interrupted by a signal is stored as pc + 1, and of a deeper stack the
 * leaf half and the root half are kept with FRAME_CUT between them. If the copy was too short, the last word
 * is FRAME_CUT.
 *
 * Return addresses that the kernel replaced (a return probe on an outer function makes them point into
 * "[uprobes]") end the walk as lost, unless the caller puts the true ones back into the copy. */
uint32_t remote_unwind(struct remote *remote, const struct unwind_registers *registers, const void *stack,
    uint32_t stack_size, uint64_t *frames, uint32_t max, enum remote_end *ret_end);

/* Where the outermost frame of the last walk ends, if that was complete: what lies above is no frame's. */
uint64_t remote_stack_end(const struct remote *remote);

/* Reads the memory map now: to be called when the process has opened or closed a library or has executed
 * another program. It is also done by itself, a limited number of times, when a walk comes to an address that
 * no module covers. Returns 0 or a negative errno; what was known stays known then. */
int remote_refresh(struct remote *remote);

/* ---- Modules: what is mapped executable ---- */

struct remote_module {
    uint64_t number;     /* 1, 2, 3... in the order in which they were noticed; never used again */
    uint64_t start, end; /* addresses */
    uint64_t file_offset;
    uint64_t inode;
    uint32_t device_major, device_minor;
    const char *path; /* as /proc/PID/maps shows it: the name in the process's own view, "[vdso]", or "" */
    bool mapped;      /* false = it was unmapped since; known until something else takes the place */
    uint8_t build_id_size;
    uint8_t build_id[sizeof((struct module_record *)0)->build_id];
};

/* Sorted by address. Pointers are good until the next call that takes a `struct remote *` which is not const.
 */
uint32_t remote_module_count(const struct remote *remote);
const struct remote_module *remote_module_at(const struct remote *remote, uint32_t index);

/* As a recording holds it, but for the path and the time, which are the collector's. */
struct module_record remote_module_record(const struct remote_module *module);

/* The greatest number given out so far: who has noted all modules up to a number looks again when it grows.
 */
uint64_t remote_newest_module(const struct remote *remote);

/* ---- What it did ---- */

struct remote_figures {
    uint64_t rules;             /* evaluated, not found in the cache */
    uint64_t refreshes;         /* of the memory map */
    uint64_t refreshes_refused; /* too many before it had found nothing new: a stack ended there */
};

struct remote_figures remote_figures(const struct remote *remote);

#endif
