#include "record/intercept/got_takeover.h"

#include "platform/caller_state.h"
#include "record/intercept/dl_hooks.h"
#include "record/intercept/dynamic_section.h"
#include "record/intercept/real_allocator.h"
#include "record/intercept/search_order.h"
#include "record/life/exit.h"

#include <dlfcn.h>
#include <link.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

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

struct hooked {
    const char *name;
    void *ours, *theirs;
};

static struct hooked hooked[] = {
    {"free_sized", entry_free, NULL}, /* what else these two are told is not needed */
    {"free_aligned_sized", entry_free, NULL}, {"dlsym", entry_dlsym, NULL},
    {"dlclose", dl_hooks_dlclose, NULL}, {"_exit", exit_hook, NULL}, {"_Exit", exit_hook, NULL},
#define ENTRY(type, name, parameters) {#name, entry_##name, NULL},
    REAL_FUNCTIONS(ENTRY)
#undef ENTRY
};
#define HOOKED_COUNT (sizeof hooked / sizeof *hooked)

/* Where the entry code goes on. */
void *(*got_takeover_next_dlsym)(void *, const char *);
void got_takeover_before_dlsym(void);

/* ---- pairs: what is remembered of slots and of modules ---- */

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

/* Libraries that come and go do so at the same addresses, most of them: that takes no more room. */
static bool set_pair(struct page **newest, uintptr_t key, uintptr_t value) {
    struct page *page = *newest;
    struct pair *former = find_pair(page, key);
    if (former) {
        former->value = value;
        return true;
    }
    if (!page || page->count == PAIRS_PER_PAGE) {
        page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) return false;
        page->older = *newest;
        *newest = page;
    }
    page->pairs[page->count++] = (struct pair){key, value};
    return true;
}

static void drop_pairs(struct page **newest) {
    for (struct page *page = *newest, *older; page; page = older) {
        older = page->older;
        munmap(page, sizeof *page);
    }
    *newest = NULL;
}

/* Changed within dl_iterate_phdr only, whose lock lets in one thread at a time. */
static struct {
    struct page *slots;   /* address of a slot: what stood there */
    struct page *modules; /* program headers of a module that is done: 1 */
    uint64_t unloads;     /* of these modules, none is gone as long as this has not changed */
    bool is_on, pending;  /* pending: a module was still being loaded */
    uint64_t loads;       /* what has been seen of the loader's count */
} state;

/* ---- a module's slots ---- */

struct module {
    const struct dl_phdr_info *info;
    uintptr_t base, relro, relro_end;
    struct relocations relocations;
    bool is_unsettled;
};

/* False for a module that has nothing to take over: ourselves, and the kernel's. */
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
    if (is_protected && mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return;
    atomic_store(slot, value); /* the slot of a call that others may be making: whole, and this is rare */
    if (is_protected) mprotect(page, page_size, PROT_READ);
}

/* ---- taking over ---- */

/* A call that is bound when it is first made has the address of its own module's code in its slot until then.
 * One that the module answers itself is left alone, and so is one that another library answers. */
static void take_slot(
    struct module *module, _Atomic(void *) *slot, uint32_t type, bool is_import, const struct hooked *found) {
    void *value = atomic_load(slot);
    if (value == found->ours || !found->theirs) return;
    bool is_unbound = type == JUMP_SLOT && is_import && holds(module, value);
    if (value == found->theirs || is_unbound) {
        if (set_pair(&state.slots, (uintptr_t)slot, (uintptr_t)value)) set_slot(module, slot, found->ours);
    } else if (is_import && (!value || (type == JUMP_SLOT && (uintptr_t)value < module->base))) {
        module->is_unsettled = true; /* not relocated yet */
    }
}

/* The kernel adds 0 to a word of it, which fails where that cannot be written. */
static bool is_writable(uintptr_t address) {
    static uint32_t nobody_waits;
    return syscall(SYS_futex, &nobody_waits, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, NULL, address,
               FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0xfff)) >= 0;
}

static int take_module(struct dl_phdr_info *info, size_t size, void *is_first) {
    struct module module;
    (void)size;
    if (*(bool *)is_first) state.pending = false; /* of those that follow, each may say otherwise */
    *(bool *)is_first = false;
    state.loads = info->dlpi_adds;
    if (info->dlpi_subs != state.unloads) drop_pairs(&state.modules);
    state.unloads = info->dlpi_subs;
    uintptr_t key = (uintptr_t)info->dlpi_phdr;
    if (!state.is_on || find_pair(state.modules, key)) return 0;
    if (read_module(info, &module)) {
        /* Another thread's dlopen is at work on it, and would be surprised to find the pages protected. */
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
    drop_pairs(&state.modules); /* so that slots which a thread was just binding are seen again */
    return 1;
}

/* Nobody comes in between: who finds nothing new afterwards finds everything done. */
static void take_all(void) {
    bool is_first = true;
    dl_iterate_phdr(take_module, &is_first);
}

void got_takeover_begin(void) {
    KEEP_CALLER_STATE;
    if (!real_allocator_is_late()) return;
    dl_iterate_phdr(note_beginning, &state);
    take_all();
}

static int is_news(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    return state.is_on && (state.pending || info->dlpi_adds != state.loads) ? 2 : 1;
}

void got_takeover_before_dlsym(void) {
    KEEP_CALLER_STATE;
    if (dl_iterate_phdr(is_news, NULL) == 2) take_all();
}

/* ---- giving back ---- */

/* By what is loaded now: a slot of a library that is gone must not be written to. */
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
    KEEP_CALLER_STATE;
    if (!real_allocator_is_late()) return;
    dl_iterate_phdr(note_beginning, NULL);
    dl_iterate_phdr(give_module, NULL);
    dl_iterate_phdr(forget_all, NULL);
}
