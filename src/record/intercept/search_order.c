#include "record/intercept/search_order.h"

#include "base/dynamic_section.h"

#include <sys/auxv.h>

#if defined(__aarch64__)
#define RESOLVER_ARGUMENT (getauxval(AT_HWCAP) | UINT64_C(1) << 62) /* bit 62: a second argument follows */
#else
#define RESOLVER_ARGUMENT 0
#endif

/* The resolver of an indirect function returns the address of the one that suits the processor. */
static void *resolve(void *resolver) {
    struct {
        uint64_t size, capabilities, more_capabilities;
    } processor = {sizeof processor, getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
    return ((void *(*)(uint64_t, const void *))resolver)(RESOLVER_ARGUMENT, &processor);
}

/* What `object` defines by the name, or NULL. */
static void *defined_in(const struct link_map *object, const char *name) {
    const ElfW(Sym) *symbol = dynamic_section_find(object, name);
    if (!symbol) return NULL;
    void *address = (void *)(object->l_addr + symbol->st_value);
    return ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC ? resolve(address) : address;
}

void *search_order_before(const char *name) {
    void *found = NULL;
    for (const struct link_map *object = _r_debug.r_map; object && object->l_ld != _DYNAMIC && !found;
         object = object->l_next)
        found = defined_in(object, name);
    return found;
}

void *search_order_behind(const char *name) {
    void *found = NULL;
    const struct link_map *object = _r_debug.r_map;
    while (object && object->l_ld != _DYNAMIC) object = object->l_next;
    while (object && !found && (object = object->l_next)) found = defined_in(object, name);
    return found;
}

bool search_order_is_before(const char *name) {
    const struct link_map *object = _r_debug.r_map;
    while (object && object->l_ld != _DYNAMIC && !dynamic_section_find(object, name)) object = object->l_next;
    return object && object->l_ld != _DYNAMIC;
}

bool search_order_is_late(void) {
    return search_order_is_before(SEARCH_ORDER_LIBC);
}

void *search_order_next(const char *name) {
    return search_order_is_late() ? search_order_before(name) : search_order_behind(name);
}

void *search_order_libc(const char *name) {
    void *found = NULL;
    for (const struct link_map *object = _r_debug.r_map; object && !found; object = object->l_next)
        if (dynamic_section_find(object, SEARCH_ORDER_LIBC)) found = defined_in(object, name);
    return found ? found : search_order_next(name);
}

uint64_t search_order_size(const char *name, const void *address) {
    for (const struct link_map *object = _r_debug.r_map; object; object = object->l_next) {
        const ElfW(Sym) *symbol = dynamic_section_find(object, name);
        if (symbol && object->l_addr + symbol->st_value == (uintptr_t)address) return symbol->st_size;
    }
    return 0;
}

const ElfW(Sym) * search_order_own_symbol(const char *name) {
    const struct link_map *object = _r_debug.r_map;
    while (object && object->l_ld != _DYNAMIC) object = object->l_next;
    return object ? dynamic_section_find(object, name) : NULL;
}
