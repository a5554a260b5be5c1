#include "record/life/exec_look.h"

#include "platform/system.h"
#include "record/life/exec_elf.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#define INTERPRETERS_MAX 5   /* the kernel follows no more scripts whose interpreter is a script */
#define SCRIPT_LINE_MAX  256 /* as much of a script's first line as the kernel reads */
#define NO_SETUID        2   /* ST_NOSUID in statfs.f_flags */

struct file_status {
    uint32_t mode, user, group;
};

static long call(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    return system_call(number, a, b, c, d, 0, 0);
}

static size_t put_number(char *text, unsigned value) {
    char digits[10];
    size_t length = 0, written = 0;
    do digits[length++] = (char)('0' + value % 10);
    while ((value /= 10));
    while (length) text[written++] = digits[--length];
    return written;
}

static void descriptor_link(int descriptor, char text[static 32]) {
    static const char folder[] = "/proc/self/fd/";
    memcpy(text, folder, sizeof folder - 1);
    text[sizeof folder - 1 + put_number(text + sizeof folder - 1, (unsigned)descriptor)] = '\0';
}

/* Opens a regular file for reading. Opening something else, such as a device, may start something. An O_PATH descriptor
 * cannot be read: a descriptor is opened once more through /proc. Returns a descriptor or -1. */
static int open_file(int folder, const char *path, int flags, struct file_status *ret_status) {
    char link[32];
    if (flags & AT_EMPTY_PATH && !*path) {
        if (folder < 0) return -1;
        descriptor_link(folder, link);
        path = link;
        folder = AT_FDCWD;
    }
    struct stat status;
    uint64_t at = (uint64_t)(int64_t)folder, text = (uintptr_t)path;
    if (call(SYS_newfstatat, at, text, (uintptr_t)&status, 0) != 0 || !S_ISREG(status.st_mode)) return -1;
    *ret_status = (struct file_status){status.st_mode, status.st_uid, status.st_gid};
    return (int)call(SYS_openat, at, text, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
}

/* Whether the program gets other rights than ours when it starts. */
static bool gains_rights(int file, const struct file_status *status) {
    uint64_t user = (uint64_t)call(SYS_getuid, 0, 0, 0, 0);
    bool by_user = status->mode & S_ISUID && status->user != user;
    bool by_group = status->mode & S_ISGID && status->mode & S_IXGRP &&
                    status->group != (uint64_t)call(SYS_getgid, 0, 0, 0, 0);
    bool by_capability =
        user != 0 && call(SYS_fgetxattr, (uint64_t)file, (uintptr_t) "security.capability", 0, 0) > 0;
    if (!by_user && !by_group && !by_capability) return false;
    struct statfs mount;
    if (call(SYS_fstatfs, (uint64_t)file, (uintptr_t)&mount, 0, 0) == 0 && mount.f_flags & NO_SETUID)
        return false;
    return call(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0) != 1;
}

/* The interpreter that a script's first line names, as the kernel reads it. `line` is changed. NULL: none. */
static char *interpreter_of(char *line, size_t length) {
    if (length < 3 || line[0] != '#' || line[1] != '!') return NULL;
    line[length] = '\0';
    char *path = line + 2 + strspn(line + 2, " \t");
    path[strcspn(path, " \t\n")] = '\0';
    return *path ? path : NULL;
}

/* The path as the kernel knows it. Without /proc, under another root for instance, it is that by which it was found. */
static void note_path(int file, const char *found, struct exec_finding *finding) {
    char link[32];
    descriptor_link(file, link);
    long length = call(SYS_readlinkat, (uint64_t)(int64_t)AT_FDCWD, (uintptr_t)link, (uintptr_t)finding->path,
        sizeof finding->path - 1);
    if (length <= 0) {
        length = (long)strnlen(found, sizeof finding->path - 1);
        memcpy(finding->path, found, (size_t)length);
    }
    finding->path[length] = '\0';
}

void exec_look(int folder, const char *path, int flags, struct exec_finding *ret_finding) {
    struct exec_finding *finding = ret_finding;
    char lines[2][SCRIPT_LINE_MAX + 1]; /* `path` may lie in that of the script before */
    finding->reason = UNRECORDED_NONE;
    finding->bears = true;
    finding->is_program = finding->is_unknown = false;
    finding->path[0] = '\0';
    for (int depth = 0; path && depth < INTERPRETERS_MAX; depth++) {
        struct file_status status;
        char *line = lines[depth % 2];
        int file = open_file(folder, path, flags, &status);
        if (file < 0) return;
        long length = call(SYS_pread64, (uint64_t)file, (uintptr_t)line, SCRIPT_LINE_MAX, 0);
        const char *found = path;
        path = NULL;
        if (length >= 4 && memcmp(line, "\177ELF", 4) == 0) {
            struct exec_elf elf = exec_elf_read(file);
            finding->reason = elf.reason;
            finding->bears = elf.bears;
            if (finding->reason == UNRECORDED_NONE && gains_rights(file, &status))
                finding->reason = UNRECORDED_RIGHTS;
            finding->is_program = true;
            note_path(file, found, finding);
        } else {
            path = length > 0 ? interpreter_of(line, (size_t)length) : NULL;
            finding->is_unknown = !path;
        }
        call(SYS_close, (uint64_t)file, 0, 0, 0);
        folder = AT_FDCWD;
        flags = 0;
    }
}
