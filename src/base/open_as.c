#include "base/open_as.h"

#include "base/open_regular.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as the kernel's own limit */

struct walk {
    int64_t user;
    bool
        is_other; /* `user` is not the caller: the kernel checks the caller's rights, open_as those of `user` */
    int root, here; /* descriptors of O_PATH */
    int found;      /* the same of the file, when the walk has come to it; else -1 */
    unsigned links;
    char rest[2 * PATH_MAX]; /* of the path: what has not been followed yet */
};

/* Whether the user has these rights: 1 to pass a folder, 4 to read. */
static bool may(const struct walk *walk, const struct stat *status, unsigned right) {
    if (!walk->is_other || walk->user == 0) return true;
    if (walk->user == (int64_t)status->st_uid) return status->st_mode >> 6 & right;
    return status->st_mode & status->st_mode >> 3 & right; /* whatever the groups are that the user is in */
}

/* Goes on at `next`, which takes the place of the folder that the walk was in. */
static void go_to(struct walk *walk, int next) {
    if (walk->here != walk->root) close(walk->here);
    walk->here = next;
}

/* Puts the target of the link in front of the rest of the path. */
static int follow_link(struct walk *walk, int link, const struct stat *status) {
    char target[PATH_MAX];
    if (status->st_uid != 0 && walk->user != (int64_t)status->st_uid) return -EACCES;
    if (++walk->links > LINKS_MAX) return -ELOOP;
    ssize_t length = readlinkat(link, "", target, sizeof target);
    if (length <= 0) return length < 0 ? -errno : -ENOENT;
    size_t rest = strlen(walk->rest);
    if ((size_t)length + 1 + rest >= sizeof walk->rest) return -ENAMETOOLONG;
    memmove(walk->rest + length + 1, walk->rest, rest + 1);
    memcpy(walk->rest, target, (size_t)length);
    walk->rest[length] = '/';
    if (target[0] == '/') go_to(walk, walk->root);
    return 0;
}

/* The folder above; of the root that is the root itself. */
static int go_up(struct walk *walk) {
    struct stat here, root, status;
    if (fstat(walk->here, &here) < 0 || fstat(walk->root, &root) < 0) return -errno;
    if (here.st_dev == root.st_dev && here.st_ino == root.st_ino) return 0;
    int above = openat(walk->here, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (above < 0) return -errno;
    go_to(walk, above);
    return fstat(above, &status) == 0 && may(walk, &status, 1) ? 0 : -EACCES;
}

/* Follows one component. Returns 0 or a negative errno. */
static int step(struct walk *walk, const char *name) {
    if (strcmp(name, "..") == 0) return go_up(walk);
    int next = openat(walk->here, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), r = -EACCES;
    if (next < 0) return -errno;
    bool is_last = walk->rest[strspn(walk->rest, "/")] == '\0';
    struct stat status;
    if (fstat(next, &status) < 0)
        r = -errno;
    else if (S_ISLNK(status.st_mode))
        r = follow_link(walk, next, &status);
    else if (S_ISDIR(status.st_mode) && !is_last && may(walk, &status, 1)) {
        go_to(walk, next);
        return 0;
    } else if (S_ISREG(status.st_mode) && is_last && may(walk, &status, 4)) {
        walk->found = next;
        return 0;
    }
    close(next);
    return r;
}

/* Takes the first component off the rest of the path. Returns 0 or a negative errno. */
static int take_component(struct walk *walk, char name[static NAME_MAX + 1]) {
    do {
        const char *start = walk->rest + strspn(walk->rest, "/");
        size_t length = strcspn(start, "/");
        if (length == 0) return -ENOENT;
        if (length > NAME_MAX) return -ENAMETOOLONG;
        memcpy(name, start, length);
        name[length] = '\0';
        memmove(walk->rest, start + length, strlen(start + length) + 1);
    } while (strcmp(name, ".") == 0);
    return 0;
}

int open_as(const char *root, const char *path, int64_t user) {
    struct walk walk = {.user = user, .is_other = user != (int64_t)geteuid(), .found = -1};
    if (path[0] != '/') return -EINVAL;
    if (strlen(path) >= sizeof walk.rest) return -ENAMETOOLONG;
    strcpy(walk.rest, path);
    walk.root = walk.here = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (walk.root < 0) return -errno;
    char name[NAME_MAX + 1];
    int r = 0;
    while (r == 0 && walk.found < 0) {
        r = take_component(&walk, name);
        if (r == 0) r = step(&walk, name);
    }
    go_to(&walk, walk.root);
    close(walk.root);
    return open_regular_found(r < 0 ? r : walk.found);
}
