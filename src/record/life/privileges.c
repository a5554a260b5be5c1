/* A program that gives up its privileges or changes its root may not be able to open the file of its
 * recording afterwards, and so not to let it grow: it gets space ahead. */
#include "record/intercept/export.h"
#include "record/life/reserve.h"

#include <dlfcn.h>
#include <sys/types.h>

/* Calls libc's own. What it did not find there the program could not have called. It is looked for at the
 * start, since handlers and children of threads may call these, but not dlsym. */
#define PASS(type, name, parameters, arguments)                                                              \
    EXPORT type name parameters;                                                                             \
    static type(*next_##name) parameters;                                                                    \
    __attribute__((constructor)) static void find_##name(void) {                                             \
        next_##name = (type(*) parameters)dlsym(RTLD_NEXT, #name);                                           \
    }                                                                                                        \
    type name parameters {                                                                                   \
        if (!next_##name) find_##name();                                                                     \
        reserve_space();                                                                                     \
        return next_##name arguments;                                                                        \
    }

PASS(int, setuid, (uid_t user), (user))
PASS(int, seteuid, (uid_t user), (user))
PASS(int, setreuid, (uid_t real, uid_t effective), (real, effective))
PASS(int, setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
PASS(int, chroot, (const char *path), (path))
