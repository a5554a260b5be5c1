/* A process with a history, told by its first argument:
 *
 *     fork       starts a child, and both allocate
 *     exec       runs itself again as "again", which allocates
 *     dlopen     loads the library in the second argument, and allocates from it
 *     exit       allocates and exits at once
 *     hold       allocates little by little, and frees all of it at once
 *
 * Between the steps it says "ready" and waits for a line, like all of these programs. */
#include "attach_target.h"

#include <dlfcn.h>
#include <sys/wait.h>

static void allocate(size_t size) {
    void *block = malloc(size);
    keep(block);
    note('a', 0, block, size);
}

static void live_with_child(void) {
    allocate(1001);
    pid_t child = fork();
    if (child == 0) {
        wait_until_attached();
        for (int i = 0; i < 5; i++) allocate(2002);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    allocate(1003);
}

static void live_with_library(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        say("%s\n", dlerror());
        exit(1);
    }
    void *(*allocate_there)(size_t) = (void *(*)(size_t))dlsym(library, "mi_malloc");
    void (*free_there)(void *) = (void (*)(void *))dlsym(library, "mi_free");
    wait_until_attached();
    void *block = allocate_there(3003);
    note('a', 0, block, 3003);
    note('f', 0, block, 0);
    free_there(block);
}

static void hold_and_let_go(void) {
    enum { BLOCKS = 3000 };
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(100);
        if (i % 10 == 0) usleep(1000);
    }
    wait_until_attached();
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
}

int main(int argc, char **argv) {
    const char *life = argc > 1 ? argv[1] : "";
    wait_until_attached();
    if (strcmp(life, "fork") == 0) live_with_child();
    if (strcmp(life, "hold") == 0) hold_and_let_go();
    if (strcmp(life, "dlopen") == 0) live_with_library(argv[2]);
    if (strcmp(life, "again") == 0) allocate(4004);
    if (strcmp(life, "exec") == 0) {
        allocate(5005);
        execl("/proc/self/exe", argv[0], "again", NULL);
        abort();
    }
    if (strcmp(life, "exit") == 0) {
        for (int i = 0; i < 100; i++) allocate(6006);
        _exit(7);
    }
    wait_until_detached();
}
