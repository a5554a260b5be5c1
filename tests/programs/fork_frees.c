/* fork_frees STACKS: allocates from STACKS stacks, keeps some blocks from one more, and forks. The child frees
 * these blocks and allocates others. In the child's recording stacks have other numbers than in the parent's. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile sink;

__attribute__((noinline)) static void *along(unsigned path) {
    void *block = path > 1 ? (path % 2 ? along(path / 2) : along(path / 2)) : malloc(24); /* @site path */
    __asm__ volatile("" : "+r"(block));
    return block;
}

int main(int count, char **arguments) {
    unsigned stacks = count > 1 ? (unsigned)atoi(arguments[1]) : 100;
    for (unsigned i = 1; i <= stacks; i++) free(along(i));
    void *kept[16];
    for (int i = 0; i < 16; i++) kept[i] = malloc(1000); /* @site kept */
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 16; i++) free(kept[i]);
        for (int i = 0; i < 3; i++) sink = malloc(500); /* @site child */
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    printf("child %d\n", status);
    return 0;
}
