/* A program that opens the interpreter, once it runs, and executes a script with it: python_embedded LIBRARY SCRIPT
 * [TIMES]. It closes the library each time, which may or may not unmap it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int execute(const char *library, const char *script) {
    void *python = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    if (!python) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void (*initialize)(int), (*finalize)(void);
    int (*run)(FILE *, const char *);
    *(void **)&initialize = dlsym(python, "Py_InitializeEx");
    *(void **)&finalize = dlsym(python, "Py_Finalize");
    *(void **)&run = dlsym(python, "PyRun_SimpleFile");
    FILE *file = fopen(script, "r");
    initialize(0);
    int failed = run(file, script);
    fclose(file);
    finalize();
    dlclose(python);
    return failed;
}

int main(int count, char **arguments) {
    free(malloc(1000));
    for (int times = count > 3 ? atoi(arguments[3]) : 1; times > 0; times--)
        if (execute(arguments[1], arguments[2]) != 0) return 1;
    return 0;
}
