#include "model/mapped_file.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    struct sigaction former;
    uintptr_t volatile start, end; /* the mapping; the handler replaces pages of it and of nothing else */
    volatile sig_atomic_t lost;
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void replace_lost_page(int signal_number, siginfo_t *information, void *context) {
    (void)signal_number;
    (void)context;
    uintptr_t page = (uintptr_t)information->si_addr & ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1);
    int error = errno;
    if (page >= guard.start && page < guard.end &&
        // cppcheck-suppress leakReturnValNotUsed ; the page is unmapped with the others of the mapping
        mmap((void *)page, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
        guard.lost = 1;
    else
        sigaction(SIGBUS, &guard.former, NULL); /* not ours: the load faults again, with the former handler */
    errno = error;
}

int mapped_file_open(int descriptor, uint64_t span, bool own, struct mapped_file *ret_file) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (span == 0 || span > (uint64_t)PTRDIFF_MAX - page) return -EFBIG;
    span = (span + page - 1) / page * page;

    pthread_mutex_lock(&guard.lock);
    void *bytes = mmap(NULL, span, own ? PROT_READ | PROT_WRITE : PROT_READ,
        (own ? MAP_PRIVATE : MAP_SHARED) | MAP_NORESERVE, descriptor, 0);
    struct sigaction action = {.sa_sigaction = replace_lost_page, .sa_flags = SA_SIGINFO};
    if (bytes == MAP_FAILED) {
        int error = errno;
        pthread_mutex_unlock(&guard.lock);
        return -error;
    }
    guard.start = (uintptr_t)bytes;
    guard.end = guard.start + span;
    guard.lost = 0;
    sigaction(SIGBUS, &action, &guard.former);
    *ret_file = (struct mapped_file){descriptor, bytes, span};
    return 0;
}

bool mapped_file_lost_pages(const struct mapped_file *file) {
    return (uintptr_t)file->bytes == guard.start && guard.lost;
}

bool mapped_file_close(struct mapped_file *file) {
    sigaction(SIGBUS, &guard.former, NULL);
    bool lost = guard.lost;
    guard.start = guard.end = 0;
    munmap(file->bytes, file->span);
    pthread_mutex_unlock(&guard.lock);
    return lost;
}

uint64_t mapped_file_size(const struct mapped_file *file) {
    struct stat status;
    if (fstat(file->descriptor, &status) < 0 || status.st_size < 0) return 0;
    return (uint64_t)status.st_size < file->span ? (uint64_t)status.st_size : file->span;
}
