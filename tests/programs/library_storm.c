/* library_storm FOLDER LIBRARIES THREADS KEEP: every thread opens the libraries 0.so, 1.so ... of a folder,
 * each in an order of its own, has each allocate, and closes it. With KEEP 1 nothing is closed, so that no
 * two libraries ever have the same address. Prints how often a library was called and how often that worked.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char *folder;
static long libraries, threads;
static int keep;
static _Atomic long calls, right;

typedef long library_function(long depth);

static long gcd(long a, long b) {
    return b ? gcd(b, a % b) : a;
}

static __attribute__((noinline)) void visit(long number) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%ld.so", folder, number);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return;
    }
    library_function *function;
    *(void **)&function = dlsym(library, "library_call");
    calls++;
    right += function && function(number % 4) == number;
    if (!keep) dlclose(library);
}

static void *storm(void *argument) {
    long me = (long)argument, step = libraries / 3 + 97 * me;
    while (gcd(step, libraries) != 1) step++; /* so that all are visited */
    for (long i = 0; i < libraries; i++) visit((i * step + me * libraries / threads) % libraries);
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 5) return 2;
    folder = arguments[1];
    libraries = atol(arguments[2]);
    threads = atol(arguments[3]);
    keep = atoi(arguments[4]);
    pthread_t thread[64];
    for (long i = 0; i < threads; i++) pthread_create(&thread[i], NULL, storm, (void *)i);
    for (long i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    printf("%ld calls, %ld right\n", calls, right);
    return 0;
}
