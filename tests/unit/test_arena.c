/* The arena: never hands out what is not reserved, says no instead of failing later. */
#include "address_space.h"
#include "check.h"
#include "platform/pages.h"
#include "platform/system.h"
#include "recording_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

static uint64_t file_size(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static void check_growth(void) {
    struct recording *recording = fixture_recording(8 << 20);
    uint64_t last = 0, total = 0, offset;
    while ((offset = arena_allocate(recording, 1000, 64))) {
        CHECK(offset % 64 == 0 && offset >= last);
        memset(arena_at(recording, offset), 0xff, 1000);
        last = offset + 1000;
        total += 1000;
    }
    CHECK(total > (7 << 20) && last <= 8 << 20);
    CHECK(file_size(recording->path) <= 8 << 20);
    struct stat status;
    CHECK(stat(recording->path, &status) == 0 && (status.st_mode & 0777) == 0600);
    fixture_free(recording);
}

static void check_close_trims(void) {
    struct recording *recording = fixture_recording(8 << 20);
    arena_allocate(recording, 5000, 8);
    arena_close(recording);
    CHECK_EQUAL(file_size(recording->path), 4096 * 3);
    CHECK_EQUAL(arena_allocate(recording, 100000, 8), 0);
    fixture_free(recording);
}

static void check_deleted_or_replaced(void) {
    struct recording *recording = fixture_recording(8 << 20);
    unlink(recording->path);
    FILE *other = fopen(recording->path, "w"); /* somebody else's file of the same name */
    fclose(other);
    CHECK_EQUAL(arena_allocate(recording, 2 << 20, 8), 0);
    CHECK(recording->header->flags & RECORDING_NO_GROWTH);
    CHECK_EQUAL(file_size(recording->path), 0);
    CHECK(arena_allocate(recording, 1000, 8) != 0); /* what was reserved is still good */
    fixture_free(recording);
}

static void check_existing_file(void) {
    struct recording *recording = fixture_recording(8 << 20), again;
    CHECK_EQUAL(arena_create(&again, recording->path, false, 1 << 20, 8 << 20), -EEXIST);
    CHECK_EQUAL(arena_create(&again, "/no/such/folder/x", false, 1 << 20, 8 << 20), -ENOENT);
    CHECK_EQUAL(arena_create(&again, recording->path, true, 1 << 20, 8 << 20), 0);
    arena_unmap(&again);
    fixture_free(recording);
}

/* Exceeding the limit would raise SIGXFSZ, which ends the program. */
static void check_file_size_limit(void) {
    struct recording *recording = fixture_recording(8 << 20);
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 2 << 20;
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK_EQUAL(arena_allocate(recording, 4 << 20, 8), 0);
    setrlimit(RLIMIT_FSIZE, &before);
    fixture_free(recording);
}

/* The recorder takes little of an address space that the program limits, and does without when there is no
 * more. */
static void check_address_space_limit(void) {
#ifdef __SANITIZE_ADDRESS__
    return; /* the sanitizer itself takes terabytes of address space */
#endif
    struct recording *recording = fixture_recording(UINT64_C(64) << 30);
    struct rlimit before, limit;
    getrlimit(RLIMIT_AS, &before);
    limit = before;
    limit.rlim_cur = UINT64_C(256) << 20;
    if (setrlimit(RLIMIT_AS, &limit) == 0) {
        void *block = mmap(NULL, 200 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(block != MAP_FAILED);
        if (address_space_is_used_up(100 << 20)) CHECK_EQUAL(arena_allocate(recording, 100 << 20, 8), 0);
        munmap(block, 200 << 20);
        setrlimit(RLIMIT_AS, &before);
    }
    fixture_free(recording);
}

/* A lack of descriptors may pass: growth is tried again, though not at each request. */
static void check_growth_after_a_failure(void) {
    struct recording *recording = fixture_recording(64 << 20);
    struct rlimit before, limit;
    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &limit);
    CHECK_EQUAL(arena_allocate(recording, 4 << 20, 8), 0);
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK(!(recording->header->flags & RECORDING_NO_GROWTH));
    unsigned refused = 0;
    while (refused < 10000 && !arena_allocate(recording, 4 << 20, 8)) refused++;
    CHECK(refused >= 100 && refused <= 2000);
    CHECK(arena_allocate(recording, 4 << 20, 8) != 0);
    fixture_free(recording);
}

/* As before a sandbox: what was reserved is there without any system call, and what was not is refused. */
static void check_space_ahead(void) {
    for (uint64_t ahead = 1 << 20; ahead <= 32 << 20; ahead *= 4) {
        struct recording *recording = fixture_recording(64 << 20);
        arena_reserve(recording, ahead);
        CHECK(file_size(recording->path) >= ahead);
        atomic_store(&system_calls_are_forbidden, true);
        uint64_t offset, total = 0;
        while ((offset = arena_allocate(recording, 1000, 8))) {
            memset(arena_at(recording, offset), 0xff, 1000);
            total += 1000;
        }
        atomic_store(&system_calls_are_forbidden, false);
        CHECK(total >= ahead - (ahead >> 6) && total < 3 * ahead);
        fixture_free(recording);
    }
    struct recording *small = fixture_recording(4 << 20);
    arena_reserve(small, 64 << 20);
    CHECK(file_size(small->path) <= 4 << 20);
    fixture_free(small);
}

static uint64_t disk_space(int file) {
    struct stat status;
    return fstat(file, &status) == 0 ? (uint64_t)status.st_blocks * 512 : 0;
}

/* A small recording takes little, and one that grows takes not much more than it uses. */
static void check_small_steps(void) {
    struct recording *recording = fixture_recording(64 << 20);
    CHECK(file_size(recording->path) <= 64 << 10);
    for (int i = 0; i < 20000; i++) {
        uint64_t offset = arena_allocate(recording, 1000, 8), end = offset + 1000;
        CHECK(offset && file_size(recording->path) <= end + end / 2 + (128 << 10));
    }
    fixture_free(recording);
}

/* As before privileges are given up: what was mapped ahead takes no space, and can be had when the file is gone. */
static void check_sparse_space(void) {
    if (!pages_can_back()) return;
    uint64_t ahead = 32 << 20;
    struct recording *recording = fixture_recording(64 << 20);
    arena_reserve_sparse(recording, ahead);
    int file = open(recording->path, O_RDONLY);
    CHECK(file_size(recording->path) >= ahead && disk_space(file) < 1 << 20);
    unlink(recording->path);
    uint64_t offset, total = 0;
    while ((offset = arena_allocate(recording, 1000, 8))) {
        memset(arena_at(recording, offset), 0xff, 1000);
        total += 1000;
        CHECK(total > 1 << 20 || disk_space(file) < 4 << 20); /* it is taken in steps */
    }
    CHECK(total >= ahead - (ahead >> 6) && total <= ahead);
    CHECK_EQUAL(recording->header->growth_error, ENOENT);
    close(file);
    fixture_free(recording);
}

/* As before an exec that fails: the recording is cut, and goes on. */
static void check_reopening(void) {
    struct recording *recording = fixture_recording(8 << 20);
    arena_allocate(recording, 5000, 8);
    uint64_t reserved = recording->header->arena_reserved;
    arena_close(recording);
    CHECK_EQUAL(file_size(recording->path), 4096 * 3);
    arena_reopen(recording, reserved);
    CHECK_EQUAL(recording->header->flags & RECORDING_FINISHED, 0);
    CHECK_EQUAL(file_size(recording->path), reserved);
    uint64_t offset = arena_allocate(recording, 2 << 20, 8);
    CHECK(offset != 0);
    memset(arena_at(recording, offset), 0xff, 2 << 20);
    fixture_free(recording);
}

static void check_pieces(void) {
    struct recording *recording = fixture_recording(UINT64_C(1) << 30);
    uint64_t large = arena_allocate(recording, 5 << 20, 4096), small = arena_allocate(recording, 100, 8);
    CHECK(large != 0 && small >= large + (5 << 20));
    memset(arena_at(recording, large), 1, 5 << 20);
    memset(arena_at(recording, small), 2, 100);
    CHECK(file_size(recording->path) >= small + 100);
    FILE *file = fopen(recording->path, "r");
    CHECK(fseek(file, (long)large + (5 << 20) - 1, SEEK_SET) == 0 && fgetc(file) == 1);
    CHECK(fseek(file, (long)small, SEEK_SET) == 0 && fgetc(file) == 2);
    fclose(file);
    fixture_free(recording);
}

int main(void) {
    check_growth();
    check_close_trims();
    check_deleted_or_replaced();
    check_existing_file();
    check_file_size_limit();
    check_address_space_limit();
    check_growth_after_a_failure();
    check_space_ahead();
    check_small_steps();
    check_sparse_space();
    check_reopening();
    check_pieces();
    return check_result();
}
