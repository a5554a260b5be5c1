/* The recorder's system calls are made inside the program's malloc, which promises more than they do: it is
 * no cancellation point (a thread that is cancelled there would leave the program's locks locked), and leaves
 * errno alone when it succeeds. The rest of the enclosing block runs without cancellation, and errno is
 * restored. */
#ifndef MALLOSCOPE_PLATFORM_CALLER_STATE_H
#define MALLOSCOPE_PLATFORM_CALLER_STATE_H

#include <errno.h>
#include <pthread.h>

struct unnoticed {
    int error, cancel_state;
};

static inline struct unnoticed unnoticed_begin(void) {
    struct unnoticed former = {.error = errno};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &former.cancel_state);
    return former;
}

static inline void unnoticed_end(const struct unnoticed *former) {
    pthread_setcancelstate(former->cancel_state, NULL);
    errno = former->error;
}

#define UNNOTICED                                                                                            \
    __attribute__((cleanup(unnoticed_end), unused)) const struct unnoticed unnoticed = unnoticed_begin()

#endif
