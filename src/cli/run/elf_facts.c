#include "cli/run/elf_facts.h"
#include "base/memory.h"

#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#elif defined(__riscv)
#define OWN_MACHINE EM_RISCV
#else
#error "name the ELF machine of this platform"
#endif

/* Allocators that a program has linked in under names of their own. Calls of malloc are recorded all the same, but
 * calls of these functions are not. */
static const struct {
    const char *symbol, *name;
} inner_allocators[] = {
    {"je_malloc", "jemalloc"},
    {"_rjem_malloc", "jemalloc"},
    {"_rjem_mallocx", "jemalloc"},
    {"mi_malloc", "mimalloc"},
    {"tc_malloc", "tcmalloc"},
    {"rpmalloc", "rpmalloc"},
    {"sn_malloc", "snmalloc"},
};

static const char *const sanitizers[] = {"libasan.so", "libtsan.so", "libmsan.so", "liblsan.so",
    "libhwasan.so", "libclang_rt.asan", "libclang_rt.tsan"};

static void read_headers(Elf *elf, struct elf_facts *facts) {
    size_t count = 0;
    if (elf_getphdrnum(elf, &count) != 0) return;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_INTERP) continue;
        if (header.p_filesz < 2 || header.p_filesz > 4096) continue;
        Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)header.p_offset, header.p_filesz, ELF_T_BYTE);
        free(facts->loader);
        facts->loader = data && data->d_buf
                            ? memory_format_text("%.*s", (int)data->d_size, (char *)data->d_buf)
                            : memory_copy_text("");
    }
}

static void read_needed(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, struct elf_facts *facts) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data && header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
    for (size_t i = 0; i < count; i++) {
        GElf_Dyn entry;
        if (!gelf_getdyn(data, (int)i, &entry)) break;
        if (entry.d_tag != DT_NEEDED && entry.d_tag != DT_SONAME) continue;
        const char *name = elf_strptr(elf, header->sh_link, entry.d_un.d_val);
        if (!name) continue;
        if (entry.d_tag == DT_SONAME && (strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld64", 4) == 0))
            facts->is_loader = true;
        for (size_t k = 0; entry.d_tag == DT_NEEDED && k < sizeof sanitizers / sizeof *sanitizers; k++)
            if (!facts->sanitizer && strncmp(name, sanitizers[k], strlen(sanitizers[k])) == 0)
                facts->sanitizer = memory_copy_text(name);
    }
}

static void read_symbol(const char *name, const GElf_Sym *symbol, struct elf_facts *facts) {
    bool is_global = GELF_ST_BIND(symbol->st_info) == STB_GLOBAL || GELF_ST_BIND(symbol->st_info) == STB_WEAK;
    bool is_code =
        GELF_ST_TYPE(symbol->st_info) == STT_FUNC || GELF_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC;
    if (symbol->st_shndx == SHN_UNDEF || !is_code) return;
    /* A local malloc serves the executable alone. What its shared libraries allocate is still recorded. */
    if (strcmp(name, "malloc") == 0 && is_global) facts->defines_malloc = true;
    if (strcmp(name, "malloc") == 0 && !is_global) facts->inner_allocator = "a hidden malloc";
    if (is_global && !facts->sanitizer &&
        (strcmp(name, "__asan_init") == 0 || strcmp(name, "__tsan_init") == 0))
        facts->sanitizer = memory_copy_text(name);
    for (size_t i = 0; i < sizeof inner_allocators / sizeof *inner_allocators; i++)
        if (strcmp(name, inner_allocators[i].symbol) == 0) facts->inner_allocator = inner_allocators[i].name;
}

static void read_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, struct elf_facts *facts) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data && header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
    for (size_t i = 1; i < count; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol)) break;
        const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (name && *name) read_symbol(name, &symbol, facts);
    }
}

static void read_sections(Elf *elf, struct elf_facts *facts) {
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header)) continue;
        if (header.sh_type == SHT_DYNAMIC) read_needed(elf, section, &header, facts);
        if (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB)
            read_symbols(elf, section, &header, facts);
    }
}

int elf_facts_read(int fd, const char *path, struct elf_facts *ret_facts, struct problem *problem) {
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    GElf_Ehdr header;
    if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header)) {
        elf_end(elf);
        return problem_set(problem, PROBLEM_FAILURE, "build it again", "'%s' is a damaged program", path);
    }
    struct elf_facts facts = {.other_class = header.e_ident[EI_CLASS] != ELFCLASS64};
    facts.other_machine = header.e_machine != OWN_MACHINE;
    read_headers(elf, &facts);
    read_sections(elf, &facts);
    elf_end(elf);
    *ret_facts = facts;
    return 0;
}

void elf_facts_free(struct elf_facts *facts) {
    free(facts->loader);
    free(facts->sanitizer);
}
