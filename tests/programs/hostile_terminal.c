/* Names and arguments that would play with a terminal if they were printed as they are. The test puts them
 * where these stand in: function and file in the debug information. The thread's name and the scope's come as
 * arguments. */
#include <pthread.h>
#include <stdlib.h>

#include "malloscope.h"

static void *volatile kept;

__attribute__((noinline)) void HOSTILE_FUNCTION(void) {
#line 7 "HOSTILE_FILE"
    for (int i = 0; i < 10; i++) kept = malloc(1000);
}

static void *in_thread(void *name) {
    pthread_setname_np(pthread_self(), name);
    HOSTILE_FUNCTION();
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t thread;
    if (count < 3) return 1;
    pthread_create(&thread, NULL, in_thread, arguments[1]);
    pthread_join(thread, NULL);
    mscope_scope_begin(arguments[2]);
    HOSTILE_FUNCTION();
    mscope_scope_end();
    return 0;
}
