/* library_places A B C D: has four libraries allocate 1000, 2000, 3000 and 4000 bytes, each opened after the
 * one before was closed, and prints where each had its function. Between B and C it forks: the child goes on
 * with C, and the parent, when the child has ended, with D. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile kept[4];

static void visit(char **paths, int which) {
    void *library = dlopen(paths[which], RTLD_NOW);
    void *(*keep)(size_t);
    if (!library) exit(1);
    *(void **)&keep = dlsym(library, "library_keep");
    kept[which] = keep(1000 * (size_t)(which + 1));
    printf("%p\n", (void *)keep);
    fflush(stdout);
    dlclose(library);
}

int main(int count, char **arguments) {
    if (count != 5) return 2;
    visit(arguments + 1, 0);
    visit(arguments + 1, 1);
    pid_t child = fork();
    if (child == 0) {
        visit(arguments + 1, 2);
        return 0;
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
    visit(arguments + 1, 3);
    return 0;
}
