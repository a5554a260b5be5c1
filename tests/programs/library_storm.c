/* library_storm FOLDER LIBRARIES THREADS KEEP: every thread opens the libraries 0.so, 1.so ... of a folder,
 * each in an order of its own, has each allocate, and closes it. With KEEP 1 nothing is closed before all
 * threads are done, so that no two libraries ever have the same address. Prints how often a library was
 * called and how often that worked. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char *folder;
static long libraries, threads;
static int keep;
static _Atomic long calls, right;
static pthread_barrier_t done;

typedef long library_function(long depth);

static long gcd(long a, long b) {
    return b ? gcd(b, a % b) : a;
}

static __attribute__((noinline)) void *visit(long number) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%ld.so", folder, number);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    library_function *function;
    *(void **)&function = dlsym(library, "library_call");
    calls++;
    right += function && function(number % 4) == number;
    if (keep) return library;
    dlclose(library);
    return NULL;
}

static void *storm(void *argument) {
    long me = (long)argument, step = libraries / 3 + 97 * me;
    void **opened = calloc((size_t)libraries, sizeof *opened);
    while (gcd(step, libraries) != 1) step++; /* so that all are visited */
    for (long i = 0; i < libraries; i++) opened[i] = visit((i * step + me * libraries / threads) % libraries);
    pthread_barrier_wait(&done);
    for (long i = 0; i < libraries; i++)
        if (opened[i]) dlclose(opened[i]);
    free(opened);
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 5) return 2;
    folder = arguments[1];
    libraries = atol(arguments[2]);
    threads = atol(arguments[3]);
    keep = atoi(arguments[4]);
    pthread_t thread[64];
    pthread_barrier_init(&done, NULL, (unsigned)threads);
    for (long i = 0; i < threads; i++) pthread_create(&thread[i], NULL, storm, (void *)i);
    for (long i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    printf("%ld calls, %ld right\n", calls, right);
    return 0;
}
