#include "core/arena.h"
#include "platform/calls.h"
#include "platform/signals.h"

#include <errno.h>
#include <string.h>
#include <sys/single_threaded.h>

#define PAGE         4096u
#define GROW_LEAST   (UINT64_C(1) << 20)
#define GROW_MOST    (UINT64_C(64) << 20)
#define RESERVE_PART (UINT64_C(4) << 20)

static uint64_t round_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

static uint64_t piece_start(const struct recording *recording, uint32_t piece) {
    return piece ? UINT64_C(1) << (recording->first_shift + piece - 1) : 0;
}

static uint64_t piece_end(const struct recording *recording, uint32_t piece) {
    return UINT64_C(1) << (recording->first_shift + piece);
}

static bool extend(struct recording *recording, uint64_t start, uint64_t end);

/* The first offset, from `offset` on, at which `size` bytes lie in one piece. */
static uint64_t place(const struct recording *recording, uint64_t offset, uint64_t size) {
    for (;;) {
        uint64_t end = piece_end(recording, arena_piece(recording, offset));
        if (offset + size <= end) return offset;
        offset = end;
    }
}

uint64_t arena_allocate(struct recording *recording, uint64_t size, uint64_t alignment) {
    struct recording_header *header = recording->header;
    /* Relaxed: a guess, which the exchange checks. What is written into the space is published by the thread that fills
     * it. */
    uint64_t used = atomic_load_explicit(&header->arena_used, memory_order_relaxed);
    for (;;) {
        if (size > header->size_max) return 0;
        uint64_t offset = place(recording, round_up(used, alignment), size);
        uint64_t end = offset + size;
        if (end > header->size_max) return 0;
        if (!extend(recording, offset, end)) return 0;
        if (atomic_compare_exchange_weak_explicit(
                &header->arena_used, &used, end, memory_order_relaxed, memory_order_relaxed))
            return offset;
    }
}

uint64_t arena_text(struct recording *recording, const char *text, size_t length) {
    uint64_t offset = arena_allocate(recording, length + 1, 1);
    if (offset) memcpy(arena_at(recording, offset), text, length);
    return offset;
}

/* ---- growth: several threads may be here at once; reserving a range twice does no harm ---- */

/* Opens the recording's file by its path. -ESTALE if another file has that path now. */
static int open_again(const struct recording *recording) {
    struct stat status;
    int file = call_open(recording->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0);
    if (file < 0) return file;
    if (call_fstat(file, &status) == 0 && status.st_dev == recording->device &&
        status.st_ino == recording->inode)
        return file;
    call_close(file);
    return -ESTALE;
}

/* Some file systems (NFS before version 4.2, some in user space) cannot reserve space. There the file gets it by being
 * written to. Zeros are only ever appended: what another thread has in the file by now is not touched. */
static int reserve_by_writing(int file, uint64_t to) {
    static const char zeros[8 * PAGE];
    struct stat status;
    int r = call_append_only(file);
    while (r == 0) {
        if ((r = call_fstat(file, &status)) < 0 || (uint64_t)status.st_size >= to) break;
        uint64_t lacking = to - (uint64_t)status.st_size;
        long written = call_write(file, zeros, lacking < sizeof zeros ? lacking : sizeof zeros);
        if (written <= 0) r = written < 0 ? (int)written : -EIO;
    }
    return r;
}

/* When a signal comes, some file systems undo what they have reserved so far. In a program whose timer fires again and
 * again, a large request might never end. So space is reserved in small parts. */
static int reserve_part(int file, uint64_t from, uint64_t size) {
    int r = -EINTR;
    for (int i = 0; r == -EINTR && i < INTERRUPTIONS_MOST; i++) r = call_fallocate(file, 0, from, size);
    return r == -EOPNOTSUPP ? reserve_by_writing(file, from + size) : r;
}

/* Reserves [from, to). Refuses to go over RLIMIT_FSIZE, which would raise SIGXFSZ in the program. */
static int reserve_space(int file, uint64_t from, uint64_t to) {
    if (to > call_file_size_limit()) return -EFBIG;
    int r = 0;
    for (uint64_t part; r == 0 && from < to; from += part) {
        part = to - from < RESERVE_PART ? to - from : RESERVE_PART;
        r = reserve_part(file, from, part);
    }
    return r;
}

/* Returns 0 or a negative errno. */
static int map_piece(struct recording *recording, int file, uint32_t piece) {
    uint64_t start = piece_start(recording, piece), size = piece_end(recording, piece) - start;
    long mapped = system_call(
        SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, (uint64_t)file, start);
    if (mapped < 0) return (int)mapped;
    void *base = (void *)mapped;
    /* At a page fault the kernel reads ahead, on some machines by megabytes. In the first piece it would clear
     * space that a small program never uses. Programs that get to the later pieces gain by reading ahead. */
    if (piece == 0) call_madvise(base, size, MADV_RANDOM);
    uintptr_t none = 0;
    /* Release: pairs with the acquire in is_mapped. */
    if (!atomic_compare_exchange_strong_explicit(&recording->piece[piece], &none, (uintptr_t)base - start,
            memory_order_release, memory_order_relaxed))
        call_munmap(base, size); /* another thread was faster */
    return 0;
}

static bool is_mapped(const struct recording *recording, uint32_t piece) {
    /* Acquire: pairs with the release in map_piece. If the piece is mapped, this thread may use it. */
    return atomic_load_explicit(&recording->piece[piece], memory_order_acquire) != 0;
}

static int grow(struct recording *recording, uint32_t piece, uint64_t reserved, uint64_t goal) {
    if (!system_calls_allowed()) return -EPERM;
    /* If a signal handler forks, its child does not go on with this: the file is its parent's. */
    HOLD_SIGNALS;
    if (recording->is_private) return -EROFS;
    int file = open_again(recording);
    if (file < 0) return file;
    int r = goal > reserved ? reserve_space(file, reserved, goal) : 0;
    if (r == 0 && !is_mapped(recording, piece)) r = map_piece(recording, file, piece);
    call_close(file);
    return r;
}

/* Errors that may be gone a moment later: the program had no descriptor or no address space left. */
static bool may_pass(int error) {
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EINTR;
}

static void note_reserved(struct recording_header *header, uint64_t reserved, uint64_t goal) {
    while (reserved < goal && !atomic_compare_exchange_weak_explicit(&header->arena_reserved, &reserved, goal,
                                  memory_order_release, memory_order_acquire)) {
    }
}

/* Makes sure that [start, end) is reserved and mapped. */
static bool extend(struct recording *recording, uint64_t start, uint64_t end) {
    struct recording_header *header = recording->header;
    uint32_t piece = arena_piece(recording, start);
    /* Acquire: pairs with the release in note_reserved. A thread that sees the number may rely on the file being as
     * long. */
    uint64_t reserved = atomic_load_explicit(&header->arena_reserved, memory_order_acquire);
    if (end <= reserved && is_mapped(recording, piece)) return true;
    if (piece >= ARENA_PIECES || atomic_load_explicit(&header->flags, memory_order_relaxed) &
                                     (RECORDING_NO_GROWTH | RECORDING_FINISHED))
        return false;

    uint64_t step = reserved / 2;
    if (step < GROW_LEAST) step = GROW_LEAST;
    if (step > GROW_MOST) step = GROW_MOST;
    uint64_t goal = reserved;
    if (end > reserved) {
        goal = round_up(end > reserved + step ? end : reserved + step, PAGE);
        if (goal > header->size_max) goal = header->size_max;
    }
    /* After a failure that may pass, growth is tried again after about a thousand requests. Relaxed, like the
     * flags: nothing is read on the strength of them. */
    if (atomic_load_explicit(&recording->retry_in, memory_order_relaxed) > 0) {
        atomic_fetch_sub_explicit(&recording->retry_in, 1, memory_order_relaxed);
        return false;
    }
    int r = grow(recording, piece, reserved, goal);
    if (r < 0) {
        if (may_pass(r))
            atomic_store_explicit(&recording->retry_in, 1000, memory_order_relaxed);
        else
            atomic_fetch_or_explicit(&header->flags, RECORDING_NO_GROWTH, memory_order_relaxed);
        return false;
    }
    note_reserved(header, reserved, goal);
    return true;
}

/* A failure here sets no flag: when the space is needed, extend tries again. */
void arena_reserve(struct recording *recording, uint64_t size) {
    struct recording_header *header = recording->header;
    /* Relaxed, like the flags: it only says where to begin. The other orders are as in extend. */
    uint64_t at = atomic_load_explicit(&header->arena_used, memory_order_relaxed), goal = at + size;
    if (goal > header->size_max) goal = header->size_max;
    while (at < goal && !(atomic_load_explicit(&header->flags, memory_order_relaxed) & RECORDING_FINISHED)) {
        uint32_t piece = arena_piece(recording, at);
        uint64_t end = round_up(at + GROW_LEAST, PAGE), last = piece_end(recording, piece);
        if (end > last) end = last;
        if (end > header->size_max) end = header->size_max;
        uint64_t reserved = atomic_load_explicit(&header->arena_reserved, memory_order_acquire);
        if (piece >= ARENA_PIECES) return;
        if ((end > reserved || !is_mapped(recording, piece)) && grow(recording, piece, reserved, end) < 0)
            return;
        note_reserved(header, reserved, end);
        at = end;
    }
}

/* ---- beginning and end ---- */

/* A new file with `reserve` bytes of space. Returns its descriptor or a negative errno. */
static int create_file(const char *path, uint64_t reserve, struct stat *ret_status) {
    int file = call_open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    if (file < 0) return file;
    int r = call_fstat(file, ret_status);
    if (r == 0) r = reserve_space(file, 0, reserve);
    if (r == 0) return file;
    call_unlink(path);
    call_close(file);
    return r;
}

static void now_in(struct recording *recording, const char *path, const struct stat *status) {
    recording->device = status->st_dev;
    recording->inode = status->st_ino;
    memcpy(recording->path, path, strlen(path) + 1);
}

int arena_create(
    struct recording *recording, const char *path, bool replace, uint64_t first, uint64_t size_max) {
    if (strlen(path) >= sizeof recording->path) return -ENAMETOOLONG;
    if (replace)
        call_unlink(path); /* and not truncated: a reader of the former recording keeps what it has mapped */
    struct stat status;
    int file = create_file(path, first, &status);
    if (file < 0) return file;

    memset(recording, 0, sizeof *recording);
    recording->first_shift = 63 - (uint32_t)__builtin_clzll(first);
    int r = map_piece(recording, file, 0);
    if (r < 0) call_unlink(path);
    call_close(file);
    if (r < 0) return r;

    now_in(recording, path, &status);
    struct recording_header *header = recording->header = arena_at(recording, 0);
    header->size_max = size_max > first ? size_max & ~(uint64_t)(PAGE - 1) : first;
    /* Relaxed: no other thread knows the recording yet. */
    atomic_store_explicit(&header->arena_reserved, first, memory_order_relaxed);
    atomic_store_explicit(&header->arena_used, PAGE, memory_order_relaxed);
    return 0;
}

void arena_unmap(struct recording *recording) {
    for (uint32_t piece = ARENA_PIECES; piece-- > 0 && system_calls_allowed();)
        if (is_mapped(recording, piece)) {
            uint64_t start = piece_start(recording, piece);
            call_munmap(arena_at(recording, start), piece_end(recording, piece) - start);
        }
}

void arena_discard(struct recording *recording) {
    call_unlink(recording->path);
    arena_unmap(recording);
}

void arena_close(struct recording *recording) {
    HOLD_SIGNALS; /* as in grow */
    if (recording->is_private) return;
    struct recording_header *header = recording->header;
    /* Release: a reader that finds the recording finished finds all figures. Other threads, if there are any, may still
     * move the bounds that are loaded here. */
    atomic_fetch_or_explicit(&header->flags, RECORDING_FINISHED, memory_order_release);
    uint64_t reserved = atomic_load_explicit(&header->arena_reserved, memory_order_acquire);
    uint64_t end = round_up(atomic_load_explicit(&header->arena_used, memory_order_acquire), PAGE);
    if (end >= reserved || !system_calls_allowed()) return;
    int file = open_again(recording);
    if (file < 0) return;
    /* Another thread may be about to write to reserved space. So the file is cut only if there is no other thread;
     * otherwise its space is given back, but its length stays. Relaxed: there is no other thread. */
    if (__libc_single_threaded) {
        atomic_store_explicit(&header->arena_reserved, end, memory_order_relaxed);
        if (call_ftruncate(file, end) != 0)
            atomic_store_explicit(&header->arena_reserved, reserved, memory_order_relaxed);
    } else {
        call_fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, end, reserved - end);
    }
    call_close(file);
}
