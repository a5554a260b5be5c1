/* The system calls that the recorder makes, each as a function of its own.
 *
 * libc has functions of the same names, but the program or a library that was preloaded may have put others in their
 * place: functions that allocate, and so come back to the recorder, or that wait for a lock which the interrupted
 * caller of malloc holds. None of libc's is called in the target. These here leave errno alone, are no cancellation
 * points, and make no call where system calls are forbidden (system.h).
 *
 * All return what the kernel returns: the result, or a negative error number. */
#ifndef MALLOSCOPE_PLATFORM_CALLS_H
#define MALLOSCOPE_PLATFORM_CALLS_H

#include "platform/system.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>

/* ---- files ---- */

static inline int call_open(const char *path, int flags, mode_t mode) {
    return (int)system_call(SYS_openat, (uint64_t)AT_FDCWD, (uint64_t)path, (uint64_t)flags, mode, 0, 0);
}

static inline int call_close(int file) {
    return (int)system_call(SYS_close, (uint64_t)file, 0, 0, 0, 0, 0);
}

static inline long call_read(int file, void *bytes, size_t size) {
    return system_call_again(SYS_read, (uint64_t)file, (uint64_t)bytes, size, 0, 0, 0);
}

static inline long call_write(int file, const void *bytes, size_t size) {
    return system_call_again(SYS_write, (uint64_t)file, (uint64_t)bytes, size, 0, 0, 0);
}

static inline int call_fstat(int file, struct stat *ret_status) {
    return (int)system_call(SYS_fstat, (uint64_t)file, (uint64_t)ret_status, 0, 0, 0, 0);
}

static inline int call_ftruncate(int file, uint64_t size) {
    return (int)system_call(SYS_ftruncate, (uint64_t)file, size, 0, 0, 0, 0);
}

static inline int call_fallocate(int file, int mode, uint64_t from, uint64_t size) {
    return (int)system_call(SYS_fallocate, (uint64_t)file, (uint64_t)mode, from, size, 0, 0);
}

static inline int call_append_only(int file) {
    return (int)system_call(SYS_fcntl, (uint64_t)file, F_SETFL, O_APPEND, 0, 0, 0);
}

static inline int call_unlink(const char *path) {
    return (int)system_call(SYS_unlinkat, (uint64_t)AT_FDCWD, (uint64_t)path, 0, 0, 0, 0);
}

/* The length of the text, which does not end with a zero. */
static inline long call_readlink(const char *path, char *text, size_t size) {
    return system_call(SYS_readlinkat, (uint64_t)AT_FDCWD, (uint64_t)path, (uint64_t)text, size, 0, 0);
}

/* The length of the path with its zero. A folder that cannot be reached from the root has a path that does not begin
 * with a slash: that is an error here. */
static inline long call_getcwd(char *path, size_t size) {
    long length = system_call(SYS_getcwd, (uint64_t)path, size, 0, 0, 0, 0);
    return length > 0 && path[0] != '/' ? -ENOENT : length;
}

/* The most bytes that a file of this process may have; UINT64_MAX: as many as there is room for, or not known. */
static inline uint64_t call_file_size_limit(void) {
    struct rlimit limit;
    long r = system_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (uint64_t)&limit, 0, 0);
    return r == 0 ? limit.rlim_cur : UINT64_MAX;
}

/* ---- memory ---- */

/* NULL: there is none. */
static inline void *call_mmap(size_t size, int protection, int flags, int file, uint64_t offset) {
    long r = system_call(SYS_mmap, 0, size, (uint64_t)protection, (uint64_t)flags, (uint64_t)file, offset);
    return r < 0 && r >= -4095 ? NULL : (void *)r;
}

static inline int call_munmap(void *memory, size_t size) {
    return (int)system_call(SYS_munmap, (uint64_t)memory, size, 0, 0, 0, 0);
}

static inline int call_mprotect(void *memory, size_t size, int protection) {
    return (int)system_call(SYS_mprotect, (uint64_t)memory, size, (uint64_t)protection, 0, 0, 0);
}

static inline int call_madvise(void *memory, size_t size, int advice) {
    return (int)system_call(SYS_madvise, (uint64_t)memory, size, (uint64_t)advice, 0, 0, 0);
}

/* ---- processes and threads ---- */

static inline int call_getpid(void) {
    return (int)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static inline int call_getppid(void) {
    return (int)system_call(SYS_getppid, 0, 0, 0, 0, 0, 0);
}

static inline int call_gettid(void) {
    return (int)system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

static inline int call_prctl(int option, uint64_t argument) {
    return (int)system_call(SYS_prctl, (uint64_t)option, argument, 0, 0, 0, 0);
}

/* ---- the rest ---- */

static inline long call_getrandom(void *bytes, size_t size, unsigned flags) {
    return system_call(SYS_getrandom, (uint64_t)bytes, size, flags, 0, 0, 0);
}

static inline int call_uname(struct utsname *ret_name) {
    return (int)system_call(SYS_uname, (uint64_t)ret_name, 0, 0, 0, 0, 0);
}

#endif
