/* attach_loads PLUGIN DONE: loads a library, allocates by it, makes DONE, and waits to be killed. */
#include "ledger.h"

#include <dlfcn.h>
#include <unistd.h>

int main(int count, char **arguments) {
    void *plugin = count == 3 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    void *(*allocate)(size_t) = plugin ? (void *(*)(size_t))dlsym(plugin, "plugin_allocate") : NULL;
    void (*release)(void *) = plugin ? (void (*)(void *))dlsym(plugin, "plugin_free") : NULL;
    REQUIRE(allocate && release);
    for (int i = 0; i < 20; i++) {
        void *block = allocate(321);
        if (i % 2) release(block);
    }
    REQUIRE(symlink("done", arguments[2]) == 0);
    for (;;) pause();
}
