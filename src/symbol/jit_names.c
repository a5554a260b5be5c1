#include "symbol/jit_names.h"

#include "base/memory.h"
#include "base/nanoseconds.h"
#include "base/open_in_root.h"
#include "symbol/demangle.h"
#include "symbol/jit_map.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* In nanoseconds. The kernel dates files by a clock that advances in ticks, the recorder reads an exact one: a
 * file may seem older than it is, by a tick. */
#define CLOCK_SLACK 1000000000u

#define MAPS_SIZE_MOST                                                                                       \
    (UINT64_C(128) << 20) /* bytes of all maps together: large programs have a few million */
#define WARNINGS_MOST 8

/* The maps that may name a process's code: its own, and its parent's if it was forked. */
enum { OWN, PARENTS, MAPS };

struct process_maps {
    bool tried[MAPS]; /* a map is read when it is first needed */
    struct jit_map map[MAPS];
    char *text[MAPS]; /* the files' contents, into which the maps point */
};

struct jit_names {
    const struct model *model;
    struct result_pool *pool;
    const char *sysroot;
    struct process_maps *processes;
    size_t bytes_left; /* of all maps together that may still be read */
    const char *warning;
    unsigned warnings;
};

struct jit_names *jit_names_new(const struct model *model, struct result_pool *pool) {
    struct jit_names *names = memory_allocate(sizeof *names);
    names->model = model;
    names->pool = pool;
    names->bytes_left = MAPS_SIZE_MOST;
    names->processes = memory_allocate_array(model->process_count + 1, sizeof *names->processes);
    return names;
}

void jit_names_free(struct jit_names *names) {
    for (size_t i = 0; i < names->model->process_count; i++)
        for (int k = 0; k < MAPS; k++) {
            jit_map_clear(&names->processes[i].map[k]);
            free(names->processes[i].text[k]);
        }
    free(names->processes);
    free(names);
}

void jit_names_set_sysroot(struct jit_names *names, const char *sysroot) {
    names->sysroot = result_pool_text(names->pool, sysroot);
}

const char *jit_names_warning(struct jit_names *names) {
    return names->warning;
}

static void warn(struct jit_names *names, const char *sentence) {
    if (names->warnings++ == WARNINGS_MOST) sentence = "more maps of generated code are not used";
    if (names->warnings > WARNINGS_MOST + 1) return;
    sentence = result_pool_line(names->pool, sentence);
    names->warning =
        names->warning ? result_pool_format(names->pool, "%s\n%s", names->warning, sentence) : sentence;
}

/* Whether the map belongs to root, to the user, or to the user whose program was recorded. */
static bool has_trusted_owner(const struct stat *status, const struct model_process *process) {
    return status->st_uid == 0 || status->st_uid == geteuid() || (int64_t)status->st_uid == process->user;
}

/* Whether the map was last written before the process began: then another process with the same number wrote it. */
static bool is_older(const struct stat *status, const struct model_process *process) {
    return nanoseconds_of(status->st_mtim) + CLOCK_SLACK < process->start_realtime;
}

/* The content of the file, up to `most` bytes, with room for one more byte. NULL if it cannot be read. */
static char *read_text(int fd, size_t most, size_t *ret_size) {
    size_t size = 0, room = 65536;
    char *text = memory_allocate(room);
    for (ssize_t got; size < most; size += (size_t)got) {
        size_t free_room = room - 1 - size, wanted = most - size < free_room ? most - size : free_room;
        got = read(fd, text + size, wanted);
        if (got < 0) {
            free(text);
            return NULL;
        }
        const char *hole = memchr(text + size, 0, (size_t)got);
        if (hole) size = (size_t)(hole - text); /* or no text at all: what follows is not read */
        if (got == 0 || hole) break;
        if (size + (size_t)got == room - 1) text = memory_reallocate(text, room *= 2);
    }
    *ret_size = size;
    return text;
}

/* Opens the map below the sysroot, or else below the root folder that the process has. `*ret_believed`: it was
 * found below the sysroot. `*ret_shown` is the path for messages, which the caller frees. */
static int open_map(const struct jit_names *names, const struct model_process *process, const char *path,
    char **ret_shown, bool *ret_believed) {
    char *root = process->running_pid ? memory_format_text("/proc/%d/root", process->running_pid)
                                      : memory_copy_text("");
    int fd = names->sysroot ? open_in_root(names->sysroot, path, O_NOFOLLOW) : -1;
    *ret_believed = fd >= 0;
    if (fd < 0) fd = open_in_root(*root ? root : "/", path, O_NOFOLLOW);
    *ret_shown = memory_format_text("%s%s", *ret_believed ? names->sysroot : root, path);
    free(root);
    return fd;
}

static void read_map(
    struct jit_names *names, const struct model_process *process, int which, struct process_maps *maps) {
    int pid = which == OWN ? process->pid : process->parent_pid;
    char *path = memory_format_text("/tmp/perf-%d.map", pid), *shown;
    bool believed;
    int fd = open_map(names, process, path, &shown, &believed);
    struct stat status;
    size_t size = 0;
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        if (!believed && !has_trusted_owner(&status, process))
            warn(names, result_pool_format(names->pool,
                            "'%s' belongs to user %u, neither to you nor to the program's user: it is not "
                            "used for the names of generated code",
                            shown, status.st_uid));
        else if (which == OWN && !believed && is_older(&status, process))
            warn(names, result_pool_format(names->pool,
                            "'%s' is older than process %d: it is not used for the names of generated code",
                            shown, pid));
        else if ((maps->text[which] = read_text(fd, names->bytes_left, &size)))
            jit_map_read(&maps->map[which], maps->text[which], size);
        names->bytes_left -= size;
        if (maps->text[which] && (uint64_t)status.st_size > size)
            warn(names,
                result_pool_format(names->pool,
                    "'%s' has %jd bytes, of which the first %zu are used: the rest is no text, or too much",
                    shown, (intmax_t)status.st_size, size));
    }
    if (maps->map[which].nonsense)
        warn(names,
            result_pool_format(names->pool, "%zu of %zu lines of '%s' make no sense: they are left out",
                maps->map[which].nonsense, maps->map[which].nonsense + maps->map[which].count, shown));
    if (fd >= 0) close(fd);
    free(shown);
    free(path);
}

const struct symbol *jit_names_find(struct jit_names *names, uint32_t number, uint64_t address) {
    if (number >= names->model->process_count) return NULL;
    const struct model_process *process = &names->model->processes[number];
    struct process_maps *maps = &names->processes[number];
    const char *name = NULL;
    for (int which = OWN; which < MAPS && !name; which++) {
        if (which == PARENTS && !(process->flags & RECORDING_FORKED)) break;
        if (!maps->tried[which]) read_map(names, process, which, maps);
        maps->tried[which] = true;
        name = jit_map_find(&maps->map[which], address);
    }
    if (!name) return NULL;
    struct symbol *symbol = result_pool_allocate(names->pool, sizeof *symbol);
    symbol->function = demangle_is_mangled(name) ? demangle_name(names->pool, name, NULL)
                                                 : result_pool_text(names->pool, name);
    return symbol;
}
