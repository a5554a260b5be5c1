#include "record/intercept/search_order.h"

#include "record/intercept/dynamic_section.h"

void *search_order_before(const char *name) {
    for (const struct link_map *object = _r_debug.r_map; object && object->l_ld != _DYNAMIC;
         object = object->l_next) {
        const ElfW(Sym) *symbol = dynamic_section_find(object, name);
        if (symbol) return (void *)(object->l_addr + symbol->st_value);
    }
    return NULL;
}

void *search_order_behind(const char *name) {
    const struct link_map *object = _r_debug.r_map;
    while (object && object->l_ld != _DYNAMIC) object = object->l_next;
    while (object && (object = object->l_next)) {
        const ElfW(Sym) *symbol = dynamic_section_find(object, name);
        if (!symbol) continue;
        return ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC ? NULL
                                                               : (void *)(object->l_addr + symbol->st_value);
    }
    return NULL;
}

bool search_order_is_before(const char *name) {
    return search_order_before(name) != NULL;
}
