#include "core/arena.h"
#include "platform/calls.h"
#include "platform/pages.h"
#include "platform/signals.h"

#include <errno.h>
#include <string.h>
#include <sys/single_threaded.h>

#define PAGE          4096u
#define RESERVE_FIRST (UINT64_C(64) << 10)
#define GROW_LEAST    (UINT64_C(64) << 10)
#define GROW_MOST     (UINT64_C(16) << 20)
#define RESERVE_PART  (UINT64_C(4) << 20)

static uint64_t round_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

static uint64_t piece_start(const struct recording *recording, uint32_t piece) {
    return piece ? UINT64_C(1) << (recording->first_shift + piece - 1) : 0;
}

static uint64_t piece_end(const struct recording *recording, uint32_t piece) {
    return UINT64_C(1) << (recording->first_shift + piece);
}

/* Where the mapping of a piece ends: no recording grows beyond its size_max. */
static uint64_t mapped_end(const struct recording *recording, uint32_t piece) {
    uint64_t end = piece_end(recording, piece);
    return end < recording->size_max ? end : recording->size_max;
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

uint64_t arena_limit(const struct recording *recording) {
    /* Relaxed: a size to aim at. */
    const struct recording_header *header = recording->header;
    bool grows = system_calls_allowed() &&
                 !(atomic_load_explicit(&header->flags, memory_order_relaxed) & RECORDING_NO_GROWTH);
    return grows ? recording->size_max : atomic_load_explicit(&header->arena_reserved, memory_order_relaxed);
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

/* Whether the program's RLIMIT_FSIZE lets a file be so long. Going over it would raise SIGXFSZ in the program. */
static bool may_be_so_long(uint64_t length) {
    return length <= call_file_size_limit();
}

/* Reserves [from, to). */
static int reserve_space(int file, uint64_t from, uint64_t to) {
    if (!may_be_so_long(to)) return -EFBIG;
    int r = 0;
    for (uint64_t part; r == 0 && from < to; from += part) {
        part = to - from < RESERVE_PART ? to - from : RESERVE_PART;
        r = reserve_part(file, from, part);
    }
    return r;
}

/* Returns 0 or a negative errno. */
static int map_piece(struct recording *recording, int file, uint32_t piece) {
    uint64_t start = piece_start(recording, piece), size = mapped_end(recording, piece) - start;
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

/* Raises one of the two bounds, arena_reserved or ahead. Release: pairs with the acquire where the bound is read. A
 * thread that sees the number may rely on the file being as long. */
static void raise_bound(_Atomic uint64_t *bound, uint64_t to) {
    uint64_t now = atomic_load_explicit(bound, memory_order_relaxed);
    while (now < to && !atomic_compare_exchange_weak_explicit(
                           bound, &now, to, memory_order_release, memory_order_relaxed)) {
    }
}

/* Has the kernel back [from, to) with space. The file is so long already, and mapped. */
static int back_pages(struct recording *recording, uint64_t from, uint64_t to) {
    int r = 0;
    for (uint64_t end; r == 0 && from < to; from = end) {
        uint32_t piece = arena_piece(recording, from);
        end = mapped_end(recording, piece) < to ? mapped_end(recording, piece) : to;
        if (!is_mapped(recording, piece)) return -ENOMEM;
        r = pages_back(arena_at(recording, from), end - from);
    }
    return r;
}

static int grow_file(struct recording *recording, uint32_t piece, uint64_t reserved, uint64_t goal) {
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

static int grow(struct recording *recording, uint32_t piece, uint64_t reserved, uint64_t goal) {
    /* Acquire: pairs with the release in raise_bound. */
    uint64_t ahead = atomic_load_explicit(&recording->ahead, memory_order_acquire);
    if (goal > ahead || !is_mapped(recording, piece)) return grow_file(recording, piece, reserved, goal);
    HOLD_SIGNALS; /* as in grow_file */
    if (recording->is_private) return -EROFS;
    return system_calls_allowed() ? back_pages(recording, reserved, goal) : -EPERM;
}

/* Errors that may be gone a moment later: the program had no descriptor or no address space left. */
static bool may_pass(int error) {
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EINTR;
}

/* The first error says why: what could not be reserved ahead may be out of reach later. Relaxed, here and below:
 * nothing is read on the strength of them. */
static void note_error(struct recording_header *header, int error) {
    uint32_t none = 0;
    if (error == EFAULT) error = ENOSPC; /* of back_pages */
    atomic_compare_exchange_strong_explicit(
        &header->growth_error, &none, (uint32_t)error, memory_order_relaxed, memory_order_relaxed);
}

static void end_growth(struct recording_header *header, int error) {
    note_error(header, error);
    atomic_fetch_or_explicit(&header->flags, RECORDING_NO_GROWTH, memory_order_relaxed);
}

/* How far space is reserved next, if it is needed up to `end`: by half of what there is in a small file, by a quarter
 * in a large one. The end of what was mapped ahead is not passed before it must be, because the file may be out of
 * reach. */
static uint64_t next_goal(struct recording *recording, uint64_t reserved, uint64_t end) {
    uint64_t step = reserved < UINT64_C(1) << 20 ? reserved / 2 : reserved / 4;
    if (step < GROW_LEAST) step = GROW_LEAST;
    if (step > GROW_MOST) step = GROW_MOST;
    uint64_t goal = (end > reserved + step ? end : reserved + step) + PAGE - 1;
    goal -= goal % PAGE;
    uint64_t ahead = atomic_load_explicit(&recording->ahead, memory_order_relaxed);
    if (end <= ahead && goal > ahead) goal = ahead;
    return goal < recording->size_max ? goal : recording->size_max;
}

/* Makes sure that [start, end) is reserved and mapped. */
static bool extend(struct recording *recording, uint64_t start, uint64_t end) {
    struct recording_header *header = recording->header;
    uint32_t piece = arena_piece(recording, start);
    /* Acquire: pairs with the release in raise_bound. */
    uint64_t reserved = atomic_load_explicit(&header->arena_reserved, memory_order_acquire);
    if (end <= reserved && is_mapped(recording, piece)) return true;
    if (piece >= ARENA_PIECES || atomic_load_explicit(&header->flags, memory_order_relaxed) &
                                     (RECORDING_NO_GROWTH | RECORDING_FINISHED))
        return false;

    uint64_t goal = end > reserved ? next_goal(recording, reserved, end) : reserved;
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
            end_growth(header, -r);
        return false;
    }
    raise_bound(&header->arena_reserved, goal);
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
        uint64_t end = round_up(at + RESERVE_PART, PAGE), last = mapped_end(recording, piece);
        if (end > last) end = last;
        uint64_t reserved = atomic_load_explicit(&header->arena_reserved, memory_order_acquire);
        if (piece >= ARENA_PIECES) return;
        /* The file comes first: unlike pages that are backed, its space takes no memory before it is used. */
        if ((end > reserved || !is_mapped(recording, piece)) &&
            grow_file(recording, piece, reserved, end) < 0 && grow(recording, piece, reserved, end) < 0)
            return;
        raise_bound(&header->arena_reserved, end);
        at = end;
    }
}

/* Makes the file at least `length` bytes long, and never shorter: another thread may be making it longer. */
static int make_longer(int file, uint64_t length) {
    if (!may_be_so_long(length)) return -EFBIG;
    return reserve_part(file, length - PAGE, PAGE);
}

void arena_reserve_sparse(struct recording *recording, uint64_t size) {
    if (!pages_can_back()) {
        arena_reserve(recording, size);
        return;
    }
    struct recording_header *header = recording->header;
    /* Relaxed, as in arena_reserve. */
    uint64_t used = atomic_load_explicit(&header->arena_used, memory_order_relaxed);
    uint64_t goal = round_up(used + size, PAGE);
    if (goal > recording->size_max) goal = recording->size_max;
    uint32_t piece = arena_piece(recording, used), last = arena_piece(recording, goal - 1);
    if (last >= ARENA_PIECES || !system_calls_allowed()) return;
    HOLD_SIGNALS; /* as in grow_file */
    if (recording->is_private) return;
    int file = open_again(recording);
    if (file < 0) return;
    int r = make_longer(file, goal);
    bool is_long = r == 0;
    if (r < 0) note_error(header, -r);
    for (; is_long && piece <= last; piece++)
        is_long = is_mapped(recording, piece) || map_piece(recording, file, piece) == 0;
    if (is_long) raise_bound(&recording->ahead, goal);
    call_close(file);
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
    uint64_t reserve = first < RESERVE_FIRST ? first : RESERVE_FIRST;
    int file = create_file(path, reserve, &status);
    if (file < 0) return file;

    memset(recording, 0, sizeof *recording);
    recording->first_shift = 63 - (uint32_t)__builtin_clzll(first);
    recording->size_max = size_max > first ? size_max & ~(uint64_t)(PAGE - 1) : first;
    int r = map_piece(recording, file, 0);
    if (r < 0) call_unlink(path);
    call_close(file);
    if (r < 0) return r;

    now_in(recording, path, &status);
    struct recording_header *header = recording->header = arena_at(recording, 0);
    header->size_max = recording->size_max;
    /* Relaxed: no other thread knows the recording yet. */
    atomic_store_explicit(&header->arena_reserved, reserve, memory_order_relaxed);
    atomic_store_explicit(&header->arena_used, PAGE, memory_order_relaxed);
    return 0;
}

void arena_unmap(struct recording *recording) {
    for (uint32_t piece = ARENA_PIECES; piece-- > 0 && system_calls_allowed();)
        if (is_mapped(recording, piece)) {
            uint64_t start = piece_start(recording, piece);
            call_munmap(arena_at(recording, start), mapped_end(recording, piece) - start);
        }
}

void arena_discard(struct recording *recording) {
    call_unlink(recording->path);
    arena_unmap(recording);
}

void arena_remove(struct recording *recording) {
    HOLD_SIGNALS; /* as in grow_file */
    if (recording->is_private) return;
    /* Relaxed: nobody reads it. */
    atomic_fetch_or_explicit(&recording->header->flags, RECORDING_FINISHED, memory_order_relaxed);
    int file = system_calls_allowed() ? open_again(recording) : -EPERM;
    if (file < 0) return;
    call_unlink(recording->path);
    call_close(file);
}

/* The length of the file, as far as this process knows. */
static uint64_t known_length(const struct recording *recording) {
    /* Relaxed: at the end of a recording there is no better moment to wait for. */
    uint64_t reserved = atomic_load_explicit(&recording->header->arena_reserved, memory_order_relaxed);
    uint64_t ahead = atomic_load_explicit(&recording->ahead, memory_order_relaxed);
    return ahead > reserved ? ahead : reserved;
}

/* Gives back what lies behind `end`. Another thread may be about to write to reserved space. So the file is cut only if
 * there is no other thread; otherwise its space is given back, but its length stays. Relaxed: there is no other
 * thread. */
static void give_back(struct recording *recording, int file, uint64_t end) {
    _Atomic uint64_t *reserved = &recording->header->arena_reserved;
    if (!__libc_single_threaded) {
        uint64_t length = known_length(recording);
        call_fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, end, length - end);
        return;
    }
    uint64_t before = atomic_exchange_explicit(reserved, end, memory_order_relaxed);
    uint64_t ahead = atomic_exchange_explicit(&recording->ahead, 0, memory_order_relaxed);
    if (call_ftruncate(file, end) == 0) return;
    atomic_store_explicit(&recording->ahead, ahead, memory_order_relaxed);
    atomic_store_explicit(reserved, before, memory_order_relaxed);
}

void arena_close(struct recording *recording) {
    HOLD_SIGNALS; /* as in grow_file */
    if (recording->is_private) return;
    struct recording_header *header = recording->header;
    /* Release: a reader that finds the recording finished finds all figures. Other threads, if there are any, may still
     * move the bounds that are loaded here. */
    atomic_fetch_or_explicit(&header->flags, RECORDING_FINISHED, memory_order_release);
    uint64_t end = round_up(atomic_load_explicit(&header->arena_used, memory_order_acquire), PAGE);
    if (end >= known_length(recording) || !system_calls_allowed()) return;
    int file = open_again(recording);
    if (file < 0) return;
    give_back(recording, file, end);
    call_close(file);
}

/* A signal handler may have interrupted an allocation from the arena, and have called arena_close and this. When the
 * interrupted allocation goes on, it takes for reserved what it has found reserved. */
void arena_reopen(struct recording *recording, uint64_t reserved) {
    struct recording_header *header = recording->header;
    /* Relaxed: there is no other thread. */
    atomic_fetch_and_explicit(&header->flags, ~(uint32_t)RECORDING_FINISHED, memory_order_relaxed);
    uint64_t now = atomic_load_explicit(&header->arena_reserved, memory_order_relaxed);
    if (reserved > now && grow_file(recording, 0, now, reserved) == 0)
        raise_bound(&header->arena_reserved, reserved);
}
