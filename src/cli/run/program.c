#include "cli/run/program.h"
#include "base/memory.h"
#include "cli/run/elf_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define INTERPRETERS_MAX 4 /* the kernel follows no more scripts whose interpreter is a script */

/* Finding */

/* 0 if `path` can be executed, else an errno. */
static int executable(const char *path) {
    struct stat status;
    if (stat(path, &status) < 0) return errno;
    if (S_ISDIR(status.st_mode)) return EISDIR;
    return access(path, X_OK) < 0 ? errno : 0;
}

static int cannot_run(const char *command, int error, struct problem *problem) {
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return problem_set(problem, PROBLEM_MISSING, "check the spelling; give a path if it is not in PATH",
            strchr(command, '/') ? "there is no program '%s'" : "there is no program '%s' in PATH", command);
    case EISDIR:
        return problem_set(
            problem, PROBLEM_PERMISSION, "name the program inside it", "'%s' is a folder", command);
    case EACCES:
        return problem_set(problem, PROBLEM_PERMISSION,
            "make it executable with chmod +x, or name the interpreter: malloscope run -- python3 script.py",
            "'%s' is not executable for you", command);
    default:
        return problem_set(problem, problem_kind_of_errno(error), "see if it runs without malloscope",
            "cannot run '%s': %s", command, strerror(error));
    }
}

int program_find(const char *command, char **ret_path, struct problem *problem) {
    if (!*command)
        return problem_set(
            problem, PROBLEM_USAGE, "name the program to run", "the name of the program is empty");
    if (strchr(command, '/')) {
        int error = executable(command);
        if (error) return cannot_run(command, error, problem);
        *ret_path = memory_copy_text(command);
        return 0;
    }
    const char *path = getenv("PATH");
    cleanup_text char *folders = memory_copy_text(path ? path : "/usr/bin:/bin");
    int failure = ENOENT;
    for (char *rest = folders, *folder; (folder = strsep(&rest, ":"));) {
        char *candidate = memory_format_text("%s/%s", *folder ? folder : ".", command);
        int error = executable(candidate);
        if (!error) {
            *ret_path = candidate;
            return 0;
        }
        free(candidate);
        if (error == EACCES)
            failure = EACCES; /* reported only if no later folder has the program, as shells do */
    }
    return cannot_run(command, failure, problem);
}

/* Can it be recorded? */

static int check_machine(const char *path, const struct elf_facts *facts, struct problem *problem) {
    if (facts->other_class)
        return problem_set(problem, PROBLEM_FAILURE,
            "build it for 64 bits; malloscope records 64-bit programs only", "'%s' is a 32-bit program",
            path);
    if (facts->other_machine)
        return problem_set(problem, PROBLEM_FAILURE,
            "run malloscope on the machine the program was built for",
            "'%s' is a program for another kind of machine", path);
    return 0;
}

static int check_loader(const char *path, const struct elf_facts *facts, struct problem *problem) {
    if (facts->is_loader) return 0;
    if (!facts->loader)
        return problem_set(problem, PROBLEM_FAILURE,
            "start it and record it with 'sudo malloscope attach PID', or link it dynamically (without "
            "-static, -static-pie; Go with cgo; Rust with a -gnu target): the recorder is preloaded by the "
            "dynamic loader",
            "'%s' is statically linked, so its allocations cannot be recorded", path);
    if (access(facts->loader, F_OK) < 0)
        return problem_set(problem, PROBLEM_MISSING, "install the C library it was built for",
            "'%s' needs the loader '%s', which is not there", path, facts->loader);
    const char *slash = strrchr(facts->loader, '/');
    if (strncmp(slash ? slash + 1 : facts->loader, "ld-musl", 7) == 0)
        return problem_set(problem, PROBLEM_FAILURE, "build it for glibc",
            "'%s' uses the musl C library, for which there is no recorder", path);
    return 0;
}

static bool has_capabilities(const char *path) {
    return getxattr(path, "security.capability", NULL, 0) > 0;
}

/* Refuses programs that get other rights than ours when they start: for these the dynamic loader ignores
 * LD_PRELOAD. */
static int check_rights(const char *path, struct problem *problem) {
    struct stat status;
    struct statvfs mount;
    if (stat(path, &status) < 0) return 0;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return 0;
    if (statvfs(path, &mount) == 0 && (mount.f_flag & ST_NOSUID)) return 0;
    if ((status.st_mode & S_ISUID) && status.st_uid != getuid()) {
        // cppcheck-suppress getpwuidCalled ; no other thread asks for users
        const struct passwd *owner = getpwuid(status.st_uid);
        char remedy[256];
        snprintf(remedy, sizeof remedy,
            "run it as its owner, for instance 'sudo -u %s malloscope run ...', or run a copy of it: a copy "
            "is not set-uid",
            owner ? owner->pw_name : "OWNER");
        return problem_set(problem, PROBLEM_FAILURE, remedy,
            "'%s' is set-uid, and the system loads no recorder into programs that change their user", path);
    }
    if ((status.st_mode & S_ISGID) && (status.st_mode & S_IXGRP) && status.st_gid != getgid())
        return problem_set(problem, PROBLEM_FAILURE,
            "run it with that group already (newgrp, sg), or run a copy of it: a copy is not set-gid",
            "'%s' is set-gid, and the system loads no recorder into programs that change their group", path);
    if (getuid() != 0 && has_capabilities(path))
        return problem_set(problem, PROBLEM_FAILURE,
            "run it as root, or run a copy of it: a copy has no file capabilities (see 'getcap')",
            "'%s' has file capabilities, and the system loads no recorder into programs that gain rights",
            path);
    return 0;
}

static int check_allocator(const char *path, const struct elf_facts *facts, struct problem *problem) {
    if (facts->sanitizer)
        return problem_set(problem, PROBLEM_FAILURE, "build it without -fsanitize=...",
            "'%s' is built with a sanitizer (%s), which replaces malloc itself", path, facts->sanitizer);
    if (facts->defines_malloc)
        return problem_set(problem, PROBLEM_FAILURE,
            "link it with the C library's malloc, or with the allocator (jemalloc, mimalloc, tcmalloc) as a "
            "shared library: then its calls can be seen",
            "'%s' carries its own malloc inside, so its calls never pass a preloaded recorder", path);
    return 0;
}

static int check_elf(const char *path, int fd, char **ret_warning, struct problem *problem) {
    struct elf_facts facts;
    int r = elf_facts_read(fd, path, &facts, problem);
    if (r < 0) return r;
    r = check_machine(path, &facts, problem);
    if (r == 0) r = check_loader(path, &facts, problem);
    if (r == 0) r = check_rights(path, problem);
    if (r == 0) r = check_allocator(path, &facts, problem);
    if (r == 0 && facts.inner_allocator && !*ret_warning)
        *ret_warning = memory_format_text(
            "'%s' has an allocator of its own inside (%s): what goes through it is not seen, "
            "only what goes through malloc is",
            path, facts.inner_allocator);
    elf_facts_free(&facts);
    return r;
}

/* Scripts */

/* The program that env looks up, from the words behind "/usr/bin/env": "[-S] [-opt] [A=B] program". NULL if there is
 * none. The caller frees it. */
static char *program_of_env(const char *argument) {
    cleanup_text char *words = memory_copy_text(argument);
    for (char *rest = words, *word; (word = strtok_r(rest, " \t", &rest));)
        if (word[0] != '-' && !strchr(word, '=')) return memory_copy_text(word);
    return NULL;
}

static int check_file(const char *path, int depth, char **ret_warning, struct problem *problem);

/* `line` is the first line of the script, without "#!". It is changed. */
static int check_script(
    const char *path, char *line, int depth, char **ret_warning, struct problem *problem) {
    line[strcspn(line, "\n")] = 0;
    line += strspn(line, " \t");
    size_t length = strcspn(line, " \t");
    const char *argument = line[length] ? line + length + 1 : "";
    line[length] = 0;
    if (!*line || depth == 0) return 0; /* the kernel will refuse it */
    int error = executable(line);
    if (error)
        return problem_set(problem, error == ENOENT ? PROBLEM_MISSING : PROBLEM_PERMISSION,
            "correct the first line of the script, or install the interpreter",
            "the script '%s' wants the interpreter '%s', which cannot be run: %s", path, line,
            strerror(error));
    int r = check_file(line, depth - 1, ret_warning, problem);
    const char *slash = strrchr(line, '/');
    if (r < 0 || strcmp(slash ? slash + 1 : line, "env") != 0) return r;
    cleanup_text char *name = program_of_env(argument);
    cleanup_text char *found = NULL;
    if (!name) return 0;
    r = program_find(name, &found, problem);
    return r < 0 ? r : check_file(found, depth - 1, ret_warning, problem);
}

static int check_file(const char *path, int depth, char **ret_warning, struct problem *problem) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0; /* a file that we may execute, but not read: nothing is known about it */
    char start[256] = "";
    ssize_t length = pread(fd, start, sizeof start - 1, 0);
    int r = 0;
    if (length >= 4 && memcmp(start, "\177ELF", 4) == 0)
        r = check_elf(path, fd, ret_warning, problem);
    else if (length > 2 && start[0] == '#' && start[1] == '!')
        r = check_script(path, start + 2, depth, ret_warning, problem);
    close(fd);
    return r;
}

int program_check(const char *path, char **ret_warning, struct problem *problem) {
    char *warning = NULL;
    int r = check_file(path, INTERPRETERS_MAX, &warning, problem);
    if (r < 0)
        free(warning);
    else
        *ret_warning = warning;
    return r;
}
