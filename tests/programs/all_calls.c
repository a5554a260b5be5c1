/* all_calls: brings the recorder to make every kind of system call that it ever makes. Its recording grows,
 * stacks are new, blocks begin a page, a library is loaded, there are a thread, a child and a signal. Prints what
 * it did, which must not depend on the recorder. */
#include "ledger.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 150000 /* more than the first piece of an exact recording has room for */
#define PAGES  2000   /* more than the first segment of the address index has room for */

static void *blocks[BLOCKS], *pages[PAGES];

__attribute__((noinline)) static void *keep(size_t size) {
    void *block = malloc(size);
    ESCAPE(block);
    REQUIRE(block);
    memset(block, 7, size);
    return block;
}

__attribute__((noinline)) static void *descend(int depth, size_t size) {
    void *block = depth ? descend(depth - 1, size) : keep(size);
    ESCAPE(block);
    return block;
}

static void fill(void) {
    for (int i = 0; i < BLOCKS; i++) blocks[i] = descend(i % 50, 24);
    for (int i = 0; i < PAGES; i++) REQUIRE(posix_memalign(&pages[i], 4096, 4096) == 0);
}

static void *in_thread(void *unused) {
    (void)unused;
    errno = 77;
    for (int i = 0; i < 1000; i++) free(descend(i % 20, 100));
    REQUIRE(errno == 77);
    return NULL;
}

static void run_thread(void) {
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, in_thread, NULL) == 0);
    pthread_join(thread, NULL);
}

static void use_library(const char *path) {
    void *library = dlopen(path, RTLD_NOW);
    REQUIRE(library);
    void *(*make)(size_t) = (void *(*)(size_t))dlsym(library, "plugin_allocate");
    REQUIRE(make);
    free(make(5000));
    dlclose(library);
}

static void run_child(void) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < BLOCKS; i += 3) free(blocks[i]);
        for (int i = 0; i < PAGES; i++) free(pages[i]);
        descend(60, 3000);
        run_thread();
        exit(5);
    }
    int status;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    printf("the child ended with %d\n", status);
}

static void ignore_unless_taken(int number) {
    struct sigaction action;
    REQUIRE(sigaction(number, NULL, &action) == 0);
    if (action.sa_handler == SIG_DFL) signal(number, SIG_IGN);
}

int main(int argc, char **argv) {
    REQUIRE(argc == 2);
    ignore_unless_taken(SIGUSR2);
    errno = 33;
    fill();
    REQUIRE(errno == 33);
    run_thread();
    use_library(argv[1]);
    run_child();
    raise(SIGUSR2); /* for a dump, if the recorder has been told so */
    unsigned long sum = 0;
    for (int i = 0; i < BLOCKS; i++) {
        sum += ((unsigned char *)blocks[i])[23];
        free(blocks[i]);
    }
    for (int i = 0; i < PAGES; i++) free(pages[i]);
    printf("%lu\n", sum);
    return 3;
}
