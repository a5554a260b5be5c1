/* Opens a library in a linker namespace of its own, one in a new one, and one in the program's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    void *apart = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW), *together = dlmopen(LM_ID_BASE, argv[1], RTLD_NOW);
    printf("%s %s %s\n", apart ? "opened" : dlerror(), together ? "opened" : dlerror(),
        apart != together ? "apart" : "together");
    return 0;
}
