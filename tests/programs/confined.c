/* confined HOW FOLDER: gives up its access to all files, goes on allocating, and makes a child that allocates.
 * Ends with 77 if the kernel does not permit it. HOW:
 *
 *     landlock   by Landlock rules that allow no file
 *     unseen     by such rules, and by a system call that does not go through libc
 *     pivot      by a new root, in namespaces of its own
 *     hide       by mounting something else on FOLDER, in namespaces of its own
 *     child      not the program does so, but a vfork child in its memory */
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 300000

static __attribute__((noinline)) void keep(void) {
    char *block = malloc(40); /* @site kept */
    REQUIRE(block);
    __asm__ volatile("" : : "r"(block) : "memory");
}

static int restrict_files(bool unseen) {
    struct landlock_ruleset_attr all = {.handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1};
    int rules = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
    if (rules < 0) return -1;
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
#if defined(__x86_64__)
    long result = SYS_landlock_restrict_self;
    if (unseen) {
        __asm__ volatile("syscall" : "+a"(result) : "D"(rules), "S"(0) : "rcx", "r11", "memory");
        return (int)result;
    }
#endif
    return (int)syscall(SYS_landlock_restrict_self, rules, 0);
}

static int mount_on(const char *folder) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return -1;
    REQUIRE(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    return mount("tmpfs", folder, "tmpfs", 0, NULL);
}

static int change_root(const char *folder) {
    if (mount_on(folder) != 0) return -1;
    REQUIRE(chdir(folder) == 0);
    REQUIRE(syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0);
    return chdir("/");
}

static int confine(const char *how, const char *folder) {
    if (strcmp(how, "pivot") == 0) return change_root(folder);
    if (strcmp(how, "hide") == 0) return mount_on(folder);
    return restrict_files(strcmp(how, "unseen") == 0);
}

static void *thread(void *unused) {
    for (int i = 0; i < BLOCKS; i++) keep();
    return unused;
}

int main(int argc, char **argv) {
    REQUIRE(argc == 3);
    int status;
    keep();
    if (strcmp(argv[1], "child") == 0) {
        pid_t child = vfork();
        if (child == 0) _exit(restrict_files(false) == 0 ? 0 : 77);
        REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status));
        if (WEXITSTATUS(status) == 77) return 77;
    } else {
        if (confine(argv[1], argv[2]) != 0) return 77;
        REQUIRE(open("/proc/self/maps", O_RDONLY) < 0 || strcmp(argv[1], "hide") == 0);
    }
    thread(NULL);
    pthread_t other;
    REQUIRE(pthread_create(&other, NULL, thread, NULL) == 0 && pthread_join(other, NULL) == 0);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 1000; i++) keep();
        exit(5);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    printf("%d\n", status);
    return 3;
}
