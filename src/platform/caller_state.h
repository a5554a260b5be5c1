/* The recorder's system calls are made inside the program's malloc, which promises more than they do: it is
 * no cancellation point (a thread that is cancelled there would leave the program's locks locked), and leaves
 * errno alone when it succeeds. The rest of the enclosing block runs without cancellation, and errno is
 * restored. */
#ifndef MALLOSCOPE_PLATFORM_CALLER_STATE_H
#define MALLOSCOPE_PLATFORM_CALLER_STATE_H

#include <errno.h>
#include <pthread.h>

struct caller_state {
    int error, cancel_state;
};

static inline struct caller_state unnoticed_begin(void) {
    struct caller_state former = {.error = errno};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &former.cancel_state);
    return former;
}

static inline void unnoticed_end(const struct caller_state *former) {
    pthread_setcancelstate(former->cancel_state, NULL);
    errno = former->error;
}

#define KEEP_CALLER_STATE                                                                                    \
    __attribute__((cleanup(unnoticed_end), unused)) const struct caller_state unnoticed = unnoticed_begin()

#endif
