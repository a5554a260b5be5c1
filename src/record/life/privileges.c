/* A program that gives up its privileges or changes its root may not be able to open its recording afterwards,
 * and then the file cannot grow. Before such a call the recording gets space in advance (reserve.h). */
#include "record/intercept/export.h"
#include "record/intercept/search_order.h"
#include "record/life/reserve.h"

#include <sys/types.h>

/* A function that reserves space and then calls libc's function of that name, `next_NAME`. It is looked up at the
 * start, while there is one thread (search_order.h). */
#define PASS(type, name, parameters, arguments)                                                              \
    EXPORT ANY_STACK type name parameters;                                                                   \
    static type(*next_##name) parameters;                                                                    \
    __attribute__((constructor)) static void find_##name(void) {                                             \
        next_##name = (type(*) parameters)search_order_next(#name);                                          \
    }                                                                                                        \
    type name parameters {                                                                                   \
        if (!next_##name) find_##name();                                                                     \
        reserve_space(false);                                                                                \
        return next_##name arguments;                                                                        \
    }

PASS(int, setuid, (uid_t user), (user))
PASS(int, seteuid, (uid_t user), (user))
PASS(int, setreuid, (uid_t real, uid_t effective), (real, effective))
PASS(int, setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
PASS(int, chroot, (const char *path), (path))
