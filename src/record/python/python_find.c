#include "record/python/python_find.h"

#include "base/dynamic_section.h"
#include "record/intercept/dl_hooks.h"
#include "record/intercept/search_order.h"

#include <link.h>
#include <string.h>

/* Finds a symbol: returns its address, or NULL. `ret_size` gets its size, and may be NULL. */
typedef const void *look_up(const struct link_map *module, const char *name, uint64_t *ret_size);

struct sized {
    const char *name;
    const void *address;
    uint64_t size;
};

/* A visitor of dl_hooks_iterate, called once: it is there for the lock that it is called with. */
static int find_size(struct dl_phdr_info *first, size_t size, void *sized) {
    struct sized *wanted = sized;
    (void)first, (void)size;
    wanted->size = search_order_size(wanted->name, wanted->address);
    return 1;
}

static uint64_t size_of(const char *name, const void *address) {
    struct sized sized = {name, address, 0};
    dl_hooks_iterate(find_size, &sized);
    return sized.size;
}

static const void *by_linker(const struct link_map *module, const char *name, uint64_t *ret_size) {
    (void)module;
    const void *address = dl_hooks_find(name);
    if (address && ret_size) *ret_size = size_of(name, address);
    return address;
}

static const void *by_table(const struct link_map *module, const char *name, uint64_t *ret_size) {
    const ElfW(Sym) *symbol = dynamic_section_find(module, name);
    if (symbol && ret_size) *ret_size = symbol->st_size;
    return symbol ? (const void *)(module->l_addr + symbol->st_value) : NULL;
}

static int minor_version(look_up *find, const struct link_map *module) {
    const unsigned long *version = find(module, "Py_Version", NULL);
    if (version) return *version >> 24 == 3 ? (int)(*version >> 16 & 0xff) : -1;
    const char *(*describe)(void);
    *(const void **)&describe = find(module, "Py_GetVersion", NULL);
    if (!describe) return -1;
    const char *text = describe();
    if (strncmp(text, "3.", 2) != 0) return -1;
    int minor = 0;
    for (text += 2; *text >= '0' && *text <= '9' && minor < 1000; text++) minor = minor * 10 + *text - '0';
    return minor;
}

static bool find_all(look_up *find, const struct link_map *module, struct interpreter *found) {
    *found = (struct interpreter){.evaluate = (uintptr_t)find(module, "_PyEval_EvalFrameDefault", NULL)};
    if (!found->evaluate) return false;
    found->minor = minor_version(find, module);
    found->runtime = find(module, "_PyRuntime", NULL);
    found->code_type = find(module, "PyCode_Type", NULL);
    bool is_old = found->minor < 12;
    *(const void **)&found->thread_state =
        find(module, found->minor < 13 ? "_PyThreadState_UncheckedGet" : "PyThreadState_GetUnchecked", NULL);
    if (is_old)
        *(const void **)&found->own_thread_state = find(module, "PyGILState_GetThisThreadState", NULL);
    find(module, "_PyEval_EvalFrameDefault", &found->evaluate_size);
    return found->minor > 0 && found->code_type && found->thread_state &&
           (!is_old || found->own_thread_state) && found->evaluate_size;
}

/* Such a visitor, too. */
static int look_anywhere(struct dl_phdr_info *first, size_t size, void *ret_found) {
    static const char name[] = "_PyEval_EvalFrameDefault";
    (void)first, (void)size;
    *(bool *)ret_found = search_order_before(name) || search_order_behind(name);
    return 1;
}

/* Whether there is an interpreter at all. Asked before dlsym is used: a dlsym that finds nothing allocates its error
 * message in the program's heap, which would show in the program's own figures. Within dl_hooks_iterate no module
 * goes away; if recording begins late, other threads may be closing some. */
static bool is_anywhere(void) {
    bool found = false;
    dl_hooks_iterate(look_anywhere, &found);
    return found;
}

bool python_find(struct interpreter *ret_interpreter) {
    return is_anywhere() && find_all(by_linker, NULL, ret_interpreter);
}

bool python_find_in(uint64_t base, struct interpreter *ret_interpreter) {
    struct link_map module;
    return dynamic_section_at(base, &module) && find_all(by_table, &module, ret_interpreter);
}
