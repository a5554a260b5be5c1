#include "record/intercept/libc_symbols.h"

#include "base/dynamic_section.h"
#include "platform/calls.h"
#include "record/intercept/dl_hooks.h"
#include "record/intercept/real_allocator.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>

#define DECLARE(type, name, parameters) extern char entry_##name[]; /* entry_*.S */
REAL_FUNCTIONS(DECLARE)
#undef DECLARE

/* A function of the C library, and ours in its place. */
struct exchange {
    uintptr_t theirs, ours; /* theirs 0: the C library does not have it */
};

#define EXCHANGES_MOST 16

struct exchanges {
    const struct link_map *libc;
    struct exchange list[EXCHANGES_MOST];
    size_t count;
};

/* The C library among the loaded objects: its malloc is the real one. */
static const struct link_map *find_libc(void) {
    for (const struct link_map *object = _r_debug.r_map; object; object = object->l_next) {
        const ElfW(Sym) *symbol = dynamic_section_find(object, "malloc");
        if (symbol && object->l_addr + symbol->st_value == (uintptr_t)real_allocator.malloc) return object;
    }
    return NULL;
}

static void exchange(struct exchanges *all, const void *theirs, const void *ours) {
    if (theirs) all->list[all->count++] = (struct exchange){(uintptr_t)theirs, (uintptr_t)ours};
}

/* What the C library calls `name`; NULL: it has no such function. */
static const void *find_in_libc(const struct exchanges *all, const char *name) {
    const ElfW(Sym) *symbol = dynamic_section_find(all->libc, name);
    return symbol ? (const void *)(all->libc->l_addr + symbol->st_value) : NULL;
}

/* Our dlclose calls the one that was found behind us. If that is not the C library's, it may go on to the C
 * library's, which then must not lead to ours. */
static void list_exchanges(struct exchanges *all) {
#define LIST(type, name, parameters) exchange(all, (void *)real_allocator.name, entry_##name);
    REAL_FUNCTIONS(LIST)
#undef LIST
    exchange(all, find_in_libc(all, "free_sized"),
        entry_free); /* the further arguments of these two are not needed */
    exchange(all, find_in_libc(all, "free_aligned_sized"), entry_free);
    const void *dlclose_here = find_in_libc(all, "dlclose");
    if (dlclose_here && dlclose_here == dl_hooks_find_dlclose())
        exchange(all, dlclose_here, (void *)dl_hooks_dlclose);
}

/* What the symbol is to lead to; 0: it is none of those that are exchanged. A function may have several symbols:
 * free is also cfree and __libc_free, and a name may have several versions. */
static uintptr_t find_ours(const struct exchanges *all, const ElfW(Sym) * symbol) {
    if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) return 0;
    for (size_t i = 0; i < all->count; i++)
        if (all->libc->l_addr + symbol->st_value == all->list[i].theirs) return all->list[i].ours;
    return 0;
}

static bool protect(uintptr_t low, uintptr_t high, int protection) {
    return call_mprotect((void *)low, high - low, protection) == 0;
}

/* The pages from the first to the last of these symbols are made writable for a moment. They hold symbols and
 * nothing else, so no thread runs code there. A symbol's value is an offset from the object's base; as all is
 * computed modulo 2^64, the offset may lead out of the object. */
bool libc_symbols_take(void) {
    struct exchanges all = {.libc = find_libc()};
    if (!all.libc) return false;
    list_exchanges(&all);
    ElfW(Sym) * symbols;
    size_t count = dynamic_section_symbols(all.libc, &symbols), first = count, last = 0;
    for (size_t i = 0; i < count; i++) {
        if (!find_ours(&all, &symbols[i])) continue;
        if (first == count) first = i;
        last = i;
    }
    if (first == count) return false;
    uintptr_t page = getauxval(AT_PAGESZ);
    uintptr_t low = (uintptr_t)&symbols[first] & -page,
              high = ((uintptr_t)&symbols[last + 1] + page - 1) & -page;
    if (!protect(low, high, PROT_READ | PROT_WRITE)) return false;
    for (size_t i = first; i <= last; i++) {
        uintptr_t ours = find_ours(&all, &symbols[i]);
        /* Atomic: another thread may be looking the symbol up. Either value is right for it. */
        if (ours) __atomic_store_n(&symbols[i].st_value, ours - all.libc->l_addr, __ATOMIC_RELAXED);
    }
    protect(low, high, PROT_READ);
    return true;
}
