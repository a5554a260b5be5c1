#include "core/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE       4096u
#define GROW_LEAST (UINT64_C(1) << 20)
#define GROW_MOST  (UINT64_C(64) << 20)

static uint64_t round_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

static bool extend(struct recording *recording, uint64_t needed);

uint64_t arena_allocate(struct recording *recording, uint64_t size, uint64_t alignment) {
    struct recording_header *header = recording->header;
    uint64_t used = atomic_load_explicit(&header->arena_used, memory_order_relaxed);
    for (;;) {
        uint64_t offset = round_up(used, alignment);
        uint64_t end = offset + size;
        if (size > header->size_max || end > header->size_max) return 0;
        if (end > atomic_load_explicit(&header->arena_reserved, memory_order_acquire) &&
            !extend(recording, end))
            return 0;
        if (atomic_compare_exchange_weak_explicit(
                &header->arena_used, &used, end, memory_order_relaxed, memory_order_relaxed))
            return offset;
    }
}

uint64_t arena_text(struct recording *recording, const char *text, size_t length) {
    uint64_t offset = arena_allocate(recording, length + 1, 1);
    if (offset) memcpy(recording_at(recording, offset), text, length);
    return offset;
}

/* Going over RLIMIT_FSIZE would raise SIGXFSZ in the program. */
static int reserve_space(int file, uint64_t from, uint64_t to) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && to > limit.rlim_cur)
        return -EFBIG;
    int r;
    do r = posix_fallocate(file, (off_t)from, (off_t)(to - from));
    while (r == EINTR);
    return -r;
}

/* Several threads may come here at once: reserving the same range twice does no harm. */
static bool extend(struct recording *recording, uint64_t needed) {
    struct recording_header *header = recording->header;
    if (atomic_load_explicit(&header->flags, memory_order_relaxed) &
        (RECORDING_NO_GROWTH | RECORDING_FINISHED))
        return false;

    uint64_t reserved = atomic_load_explicit(&header->arena_reserved, memory_order_acquire);
    uint64_t step = reserved / 2;
    if (step < GROW_LEAST) step = GROW_LEAST;
    if (step > GROW_MOST) step = GROW_MOST;
    uint64_t goal = round_up(needed > reserved + step ? needed : reserved + step, PAGE);
    if (goal > header->size_max) goal = header->size_max;
    if (needed <= reserved) return true;
    if (goal < needed) return false;

    bool grown = false;
    int file = open(recording->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
    if (file >= 0) {
        struct stat status;
        grown = fstat(file, &status) == 0 && status.st_dev == recording->device &&
                status.st_ino == recording->inode && reserve_space(file, reserved, goal) == 0;
        close(file);
    }
    if (!grown) {
        atomic_fetch_or_explicit(&header->flags, RECORDING_NO_GROWTH, memory_order_relaxed);
        return false;
    }
    while (reserved < goal && !atomic_compare_exchange_weak_explicit(&header->arena_reserved, &reserved, goal,
                                  memory_order_release, memory_order_acquire)) {
    }
    return true;
}

/* A new file with `reserve` bytes of space. Returns its descriptor or a negative errno. */
static int create_file(const char *path, uint64_t reserve, struct stat *ret_status) {
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    if (file < 0) return -errno;
    int r = fstat(file, ret_status) == 0 ? reserve_space(file, 0, reserve) : -errno;
    if (r == 0) return file;
    unlink(path);
    close(file);
    return r;
}

static void now_at(
    struct recording *recording, void *base, uint64_t span, const char *path, const struct stat *status) {
    recording->header = base;
    recording->span = span;
    recording->device = status->st_dev;
    recording->inode = status->st_ino;
    memcpy(recording->path, path, strlen(path) + 1);
}

int arena_create(
    struct recording *recording, const char *path, bool replace, uint64_t reserve, uint64_t size_max) {
    if (strlen(path) >= sizeof recording->path) return -ENAMETOOLONG;
    if (size_max < reserve) size_max = reserve;
    if (replace) unlink(path); /* a reader of the former recording keeps what it has mapped */
    struct stat status;
    int file = create_file(path, reserve, &status);
    if (file < 0) return file;

    int r = 0;
    void *base = MAP_FAILED;
    uint64_t span = round_up(size_max, PAGE);
    for (; r == 0; span = round_up(span / 2, PAGE)) {
        base = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
        if (base != MAP_FAILED) break;
        if (errno != ENOMEM || span / 2 < reserve) r = -errno;
    }
    if (r < 0) unlink(path);
    close(file);
    if (r < 0) return r;

    now_at(recording, base, span, path, &status);
    recording->header->size_max = span;
    atomic_store_explicit(&recording->header->arena_reserved, reserve, memory_order_relaxed);
    atomic_store_explicit(&recording->header->arena_used, PAGE, memory_order_relaxed);
    return 0;
}

int arena_fork(struct recording *recording, const char *path) {
    struct recording_header *header = recording->header;
    uint64_t used = atomic_load_explicit(&header->arena_used, memory_order_acquire);
    uint64_t reserve = round_up(used, PAGE);
    struct stat status;
    int file = create_file(path, reserve, &status);
    if (file < 0) return file;

    int r = 0;
    for (uint64_t done = 0; r == 0 && done < used;) {
        ssize_t written = write(file, (char *)header + done, used - done);
        if (written > 0)
            done += (uint64_t)written;
        else if (written == 0 || errno != EINTR)
            r = written ? -errno : -ENOSPC;
    }
    if (r == 0 && mmap(header, recording->span, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0) == MAP_FAILED)
        r = -errno;
    if (r < 0) unlink(path);
    close(file);
    if (r < 0) return r;
    now_at(recording, header, recording->span, path, &status);
    atomic_store_explicit(&header->arena_used, used, memory_order_relaxed);
    atomic_store_explicit(&header->arena_reserved, reserve, memory_order_release);
    return 0;
}

void arena_close(struct recording *recording) {
    struct recording_header *header = recording->header;
    atomic_fetch_or_explicit(&header->flags, RECORDING_FINISHED, memory_order_release);

    /* No request beyond the new end can succeed once arena_reserved is lowered; then the file may be cut. */
    uint64_t reserved = atomic_load_explicit(&header->arena_reserved, memory_order_acquire);
    uint64_t end;
    do end = round_up(atomic_load_explicit(&header->arena_used, memory_order_acquire), PAGE);
    while (end < reserved && !atomic_compare_exchange_weak_explicit(&header->arena_reserved, &reserved, end,
                                 memory_order_acq_rel, memory_order_acquire));
    if (end >= reserved) return;

    int file = open(recording->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
    if (file < 0) return;
    struct stat status;
    if (fstat(file, &status) == 0 && status.st_dev == recording->device &&
        status.st_ino == recording->inode &&
        atomic_load_explicit(&header->arena_used, memory_order_acquire) <= end)
        if (ftruncate(file, (off_t)end) != 0) { /* the file merely stays larger than it need be */
        }
    close(file);
}
