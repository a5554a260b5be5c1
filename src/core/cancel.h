/* malloc is no cancellation point, but some of the system calls behind it are when the recorder makes them: a
 * thread that is cancelled there would leave the program's locks locked. The rest of the enclosing block runs
 * without cancellation. */
#ifndef MALLOSCOPE_CORE_CANCEL_H
#define MALLOSCOPE_CORE_CANCEL_H

#include <pthread.h>

static inline int cancel_disable(void) {
    int former;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &former);
    return former;
}

static inline void cancel_restore(const int *former) {
    pthread_setcancelstate(*former, NULL);
}

#define WITHOUT_CANCELLATION                                                                                 \
    __attribute__((cleanup(cancel_restore), unused)) const int former_cancel_state = cancel_disable()

#endif
