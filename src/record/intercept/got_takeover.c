#include "record/intercept/got_takeover.h"

#include "base/dynamic_section.h"
#include "platform/calls.h"
#include "record/intercept/dl_hooks.h"
#include "record/intercept/export.h"
#include "record/intercept/real_allocator.h"
#include "record/intercept/search_order.h"
#include "record/life/exit.h"

#include <link.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#if defined(__x86_64__)
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT  R_X86_64_GLOB_DAT
#define ABSOLUTE  R_X86_64_64
#else
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT  R_AARCH64_GLOB_DAT
#define ABSOLUTE  R_AARCH64_ABS64
#endif

#define DECLARE(type, name, parameters) extern char entry_##name[]; /* entry_*.S */
REAL_FUNCTIONS(DECLARE)
DECLARE(, dlsym, )
#undef DECLARE

/* A function whose address is exchanged. */
struct hooked {
    const char *name;
    void *ours;
    void *theirs; /* what the process uses by that name; NULL: it was not found, and nothing is exchanged */
};

static struct hooked hooked[] = {
    {"free_sized", entry_free, NULL}, /* the further arguments of these two are not needed */
    {"free_aligned_sized", entry_free, NULL}, {"dlsym", entry_dlsym, NULL},
    {"dlclose", dl_hooks_dlclose, NULL}, {"_exit", exit_hook, NULL}, {"_Exit", exit_hook, NULL},
#define ENTRY(type, name, parameters) {#name, entry_##name, NULL},
    REAL_FUNCTIONS(ENTRY)
#undef ENTRY
};
#define HOOKED_COUNT (sizeof hooked / sizeof *hooked)

/* Where the entry code's dlsym goes on. */
void *(*got_takeover_next_dlsym)(void *, const char *);
ANY_STACK void got_takeover_before_dlsym(void);

/* ---- pairs: a small map from addresses to words, in pages of its own ---- */

struct pair {
    uintptr_t key, value;
};

#define PAIRS_PER_PAGE 255

struct page {
    struct page *older;
    size_t count;
    struct pair pairs[PAIRS_PER_PAGE];
};

static struct pair *find_pair(struct page *page, uintptr_t key) {
    for (; page; page = page->older)
        for (size_t i = 0; i < page->count; i++)
            if (page->pairs[i].key == key) return &page->pairs[i];
    return NULL;
}

/* Sets the value of `key`. False: there is no memory. Pairs are never removed one by one. A library that is
 * closed and opened again mostly gets the same addresses, and so the same pairs. */
static bool set_pair(struct page **newest, uintptr_t key, uintptr_t value) {
    struct page *page = *newest;
    struct pair *former = find_pair(page, key);
    if (former) {
        former->value = value;
        return true;
    }
    if (!page || page->count == PAIRS_PER_PAGE) {
        page = call_mmap(sizeof *page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (!page) return false;
        page->older = *newest;
        *newest = page;
    }
    page->pairs[page->count++] = (struct pair){key, value};
    return true;
}

static void drop_pairs(struct page **newest) {
    for (struct page *page = *newest, *older; page; page = older) {
        older = page->older;
        call_munmap(page, sizeof *page);
    }
    *newest = NULL;
}

/* Read and changed only within dl_iterate_phdr, whose lock lets in one thread at a time. */
static struct {
    struct page *slots;   /* key: address of a GOT slot that was changed; value: what it held before */
    struct page *modules; /* key: address of the program headers of a module that is taken over; value: 1 */
    uint64_t loads;       /* the linker's count of loaded objects when the modules were last looked at */
    uint64_t unloads;     /* its count of unloaded objects; while it stays, the keys of `modules` stay true */
    bool is_on;           /* between got_takeover_begin and got_takeover_end */
    bool pending;         /* a module was still being loaded, and is to be looked at again */
} state;

/* ---- a module's slots ---- */

struct module {
    const struct dl_phdr_info *info;
    uintptr_t base;
    uintptr_t relro, relro_end; /* pages that the linker makes read-only when it has relocated the module */
    struct relocations relocations;
    bool is_unsettled; /* a slot was found that the linker has not filled in yet */
};

/* Reads what is needed of a module. False: there is nothing to take over, because it is this library, or the
 * kernel's vDSO, or has no symbols. */
static bool read_module(const struct dl_phdr_info *info, struct module *module) {
    ElfW(Dyn) *dynamic = NULL;
    uintptr_t page = getauxval(AT_PAGESZ);
    *module = (struct module){.info = info, .base = info->dlpi_addr};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = module->base + part->p_vaddr;
        if (part->p_type == PT_DYNAMIC) dynamic = (void *)start;
        if (part->p_type == PT_GNU_RELRO) {
            module->relro = start & -page;
            module->relro_end = (start + part->p_memsz) & -page;
        }
    }
    if (!dynamic || dynamic == _DYNAMIC || module->base == getauxval(AT_SYSINFO_EHDR)) return false;
    module->relocations =
        dynamic_section_relocations(&(struct link_map){.l_addr = module->base, .l_ld = dynamic});
    return module->relocations.symbols && module->relocations.text;
}

/* Whether the address lies in the module. */
static bool holds(const struct module *module, const void *address) {
    for (int i = 0; i < module->info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &module->info->dlpi_phdr[i];
        uintptr_t start = module->base + part->p_vaddr;
        if (part->p_type == PT_LOAD && (uintptr_t)address - start < part->p_memsz) return true;
    }
    return false;
}

static const struct hooked *find_hooked(const char *name) {
    for (size_t i = 0; i < HOOKED_COUNT; i++)
        if (name[0] == hooked[i].name[0] && strcmp(name, hooked[i].name) == 0) return &hooked[i];
    return NULL;
}

typedef void visit_slot(
    struct module *module, _Atomic(void *) *slot, uint32_t type, bool is_import, const struct hooked *hooked);

/* Calls `visit` for every slot of the module that is filled with the address of a hooked function. `is_import`:
 * the module does not define the function itself. */
static void each_slot(struct module *module, visit_slot *visit) {
    const struct relocations *all = &module->relocations;
    for (int table = 0; table < 2; table++) {
        const ElfW(Rela) *at = all->tables[table], *end = at + all->counts[table];
        for (; at && at < end; at++) {
            uint32_t type = (uint32_t)ELF64_R_TYPE(at->r_info), number = (uint32_t)ELF64_R_SYM(at->r_info);
            if (type != JUMP_SLOT && type != GLOB_DAT && (type != ABSOLUTE || at->r_addend)) continue;
            const struct hooked *found = find_hooked(dynamic_section_relocation_name(all, at));
            bool is_import = all->symbols[number].st_shndx == SHN_UNDEF;
            if (found) visit(module, (void *)(module->base + at->r_offset), type, is_import, found);
        }
    }
}

static void set_slot(const struct module *module, _Atomic(void *) *slot, void *value) {
    uintptr_t page_size = getauxval(AT_PAGESZ);
    void *page = (void *)((uintptr_t)slot & -page_size);
    bool is_protected = (uintptr_t)slot - module->relro < module->relro_end - module->relro;
    if (is_protected && call_mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return;
    atomic_store(slot, value); /* atomic: another thread may be making this call */
    if (is_protected) call_mprotect(page, page_size, PROT_READ);
}

/* ---- taking over ---- */

/* Exchanges a slot's address for ours, if the slot leads to the process's function of that name, or is not bound
 * yet. With lazy binding a slot of the PLT holds, until the first call, the address of code in its own module. A
 * slot that leads to another function is left alone: the module's own, or another library's. */
static void take_slot(
    struct module *module, _Atomic(void *) *slot, uint32_t type, bool is_import, const struct hooked *found) {
    void *value = atomic_load(slot);
    if (value == found->ours || !found->theirs) return;
    bool is_unbound = type == JUMP_SLOT && is_import && holds(module, value);
    if (value == found->theirs || is_unbound) {
        if (set_pair(&state.slots, (uintptr_t)slot, (uintptr_t)value)) set_slot(module, slot, found->ours);
    } else if (is_import && (!value || (type == JUMP_SLOT && (uintptr_t)value < module->base))) {
        module->is_unsettled = true; /* the linker has not relocated it yet */
    }
}

/* Whether the page can be written to. FUTEX_WAKE_OP has the kernel add 0 to the word there, which fails if it
 * cannot. */
static bool is_writable(uintptr_t address) {
    static uint32_t nobody_waits;
    return system_call(SYS_futex, (uint64_t)&nobody_waits, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0, address,
               FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0xfff)) >= 0;
}

static int take_module(struct dl_phdr_info *info, size_t size, void *is_first) {
    struct module module;
    (void)size;
    if (*(bool *)is_first) state.pending = false; /* each module that is visited may set it again */
    *(bool *)is_first = false;
    state.loads = info->dlpi_adds;
    if (info->dlpi_subs != state.unloads) drop_pairs(&state.modules);
    state.unloads = info->dlpi_subs;
    uintptr_t key = (uintptr_t)info->dlpi_phdr;
    if (!state.is_on || find_pair(state.modules, key)) return 0;
    if (read_module(info, &module)) {
        /* If the RELRO pages are writable, another thread's dlopen is relocating the module. set_slot would
         * protect a page that the linker is about to write to. So the module is left for later. */
        bool is_loading = module.relro < module.relro_end && is_writable(module.relro);
        if (!is_loading) each_slot(&module, take_slot);
        if (is_loading || module.is_unsettled) {
            state.pending = true;
            return 0;
        }
    }
    set_pair(&state.modules, key, 1);
    return 0;
}

static void find_theirs(void) {
    for (size_t i = 0; i < HOOKED_COUNT; i++) hooked[i].theirs = search_order_before(hooked[i].name);
    *(void **)&got_takeover_next_dlsym = search_order_before("dlsym");
}

static int note_beginning(struct dl_phdr_info *info, size_t size, void *wanted) {
    (void)info, (void)size;
    if (!got_takeover_next_dlsym) find_theirs();
    state.is_on = wanted;
    state.pending = false;
    /* All modules are looked at again: a thread may have bound a slot, and so overwritten our address, in
     * between. */
    drop_pairs(&state.modules);
    return 1;
}

/* One call of dl_iterate_phdr, so that its lock is held throughout: a thread that finds nothing new after that
 * finds every module taken over. */
static void take_all(void) {
    bool is_first = true;
    dl_hooks_iterate(take_module, &is_first);
}

void got_takeover_begin(void) {
    if (!real_allocator_is_late()) return;
    dl_hooks_iterate(note_beginning, &state);
    take_all();
}

/* 2: modules were loaded since they were last looked at, or some are pending. */
static int is_news(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    return state.is_on && (state.pending || info->dlpi_adds != state.loads) ? 2 : 1;
}

void got_takeover_before_dlsym(void) {
    if (dl_hooks_iterate(is_news, NULL) == 2) take_all();
}

/* ---- giving back ---- */

/* Slots are found by way of the modules that are loaded now, because a slot of a module that is gone must not be
 * written to. */
static void give_slot(
    struct module *module, _Atomic(void *) *slot, uint32_t type, bool is_import, const struct hooked *found) {
    (void)type, (void)is_import;
    const struct pair *pair = find_pair(state.slots, (uintptr_t)slot);
    if (pair && atomic_load(slot) == found->ours) set_slot(module, slot, (void *)pair->value);
}

static int give_module(struct dl_phdr_info *info, size_t size, void *unused) {
    struct module module;
    (void)size, (void)unused;
    if (read_module(info, &module)) each_slot(&module, give_slot);
    return 0;
}

static int forget_all(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)info, (void)size, (void)unused;
    drop_pairs(&state.slots);
    return 1;
}

void got_takeover_end(void) {
    if (!real_allocator_is_late()) return;
    dl_hooks_iterate(note_beginning, NULL);
    dl_hooks_iterate(give_module, NULL);
    dl_hooks_iterate(forget_all, NULL);
}
