/* Opens a plug-in and lets it work. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
    void *plugin = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    int (*work)(void) = plugin ? (int (*)(void))dlsym(plugin, "plugin_work") : NULL;
    if (!work) return 1;
    printf("%d\n", work());
    return 0;
}
