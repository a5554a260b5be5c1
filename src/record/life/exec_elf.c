#include "record/life/exec_elf.h"

#include "platform/system.h"

#include <elf.h>
#include <string.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#else
#define OWN_MACHINE EM_AARCH64
#endif

/* Bounds for what a file may ask of us. Real programs stay far below. */
#define HEADERS_MOST 256  /* program headers */
#define LOADS_MOST   24   /* loaded segments that are known */
#define DYNAMIC_MOST 1024 /* entries of the dynamic section */
#define CHAIN_MOST   4096 /* symbols of one bucket of the hash table */
#define BATCH        8    /* headers or entries that are read at once */

struct image {
    int file;
    size_t load_count;
    struct {
        uint64_t address, size, offset;
    } load[LOADS_MOST];
    uint64_t dynamic, dynamic_count; /* offset in the file, and number of entries */
    uint64_t texts, symbols, hashes; /* offsets in the file of .dynstr, .dynsym and .gnu.hash; 0 = none */
    bool has_interpreter, has_soname;
    char interpreter[128]; /* its path, cut */
    char soname[24];       /* likewise */
};

static bool read_at(const struct image *image, uint64_t offset, void *to, size_t size) {
    return system_call(SYS_pread64, (uint64_t)image->file, (uintptr_t)to, size, offset, 0, 0) == (long)size;
}

/* Reads as much of a text as there is room for. */
static void read_text(const struct image *image, uint64_t offset, char *to, size_t size) {
    long length = system_call(SYS_pread64, (uint64_t)image->file, (uintptr_t)to, size - 1, offset, 0, 0);
    to[length > 0 ? length : 0] = '\0';
}

/* The offset in the file of what is loaded at an address; 0 if no segment has it. */
static uint64_t offset_of(const struct image *image, uint64_t address) {
    for (size_t i = 0; i < image->load_count; i++)
        if (address - image->load[i].address < image->load[i].size)
            return address - image->load[i].address + image->load[i].offset;
    return 0;
}

static void note_header(struct image *image, const Elf64_Phdr *header) {
    if (header->p_type == PT_LOAD && image->load_count < LOADS_MOST) {
        image->load[image->load_count].address = header->p_vaddr;
        image->load[image->load_count].size = header->p_filesz;
        image->load[image->load_count++].offset = header->p_offset;
    } else if (header->p_type == PT_DYNAMIC) {
        image->dynamic = header->p_offset;
        image->dynamic_count = header->p_filesz / sizeof(Elf64_Dyn);
        if (image->dynamic_count > DYNAMIC_MOST) image->dynamic_count = DYNAMIC_MOST;
    } else if (header->p_type == PT_INTERP) {
        size_t size = sizeof image->interpreter;
        image->has_interpreter = true;
        read_text(image, header->p_offset, image->interpreter,
            header->p_filesz < size ? header->p_filesz + 1 : size);
    }
}

static void read_headers(struct image *image, const Elf64_Ehdr *file) {
    Elf64_Phdr batch[BATCH];
    size_t count = file->e_phnum < HEADERS_MOST ? file->e_phnum : HEADERS_MOST;
    for (size_t i = 0, some; i < count; i += some) {
        some = count - i < BATCH ? count - i : BATCH;
        if (!read_at(image, file->e_phoff + i * sizeof *batch, batch, some * sizeof *batch)) return;
        for (size_t k = 0; k < some; k++) note_header(image, &batch[k]);
    }
}

/* ---- the dynamic section ---- */

/* Returns true to stop. */
typedef bool take_entry(struct image *image, const Elf64_Dyn *entry);

static bool each_entry(struct image *image, take_entry *take) {
    Elf64_Dyn batch[BATCH];
    for (uint64_t i = 0, some; i < image->dynamic_count; i += some) {
        some = image->dynamic_count - i < BATCH ? image->dynamic_count - i : BATCH;
        if (!read_at(image, image->dynamic + i * sizeof *batch, batch, some * sizeof *batch)) return false;
        for (uint64_t k = 0; k < some && batch[k].d_tag != DT_NULL; k++)
            if (take(image, &batch[k])) return true;
    }
    return false;
}

static bool take_tables(struct image *image, const Elf64_Dyn *entry) {
    if (entry->d_tag == DT_STRTAB) image->texts = offset_of(image, entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB) image->symbols = offset_of(image, entry->d_un.d_ptr);
    if (entry->d_tag == DT_GNU_HASH) image->hashes = offset_of(image, entry->d_un.d_ptr);
    return false;
}

static bool take_soname(struct image *image, const Elf64_Dyn *entry) {
    if (entry->d_tag != DT_SONAME || !image->texts) return false;
    image->has_soname = true;
    read_text(image, image->texts + entry->d_un.d_val, image->soname, sizeof image->soname);
    return true;
}

static bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

static bool takes_sanitizer(struct image *image, const Elf64_Dyn *entry) {
    static const char *const libraries[] = {"libasan.so", "libtsan.so", "liblsan.so", "libhwasan.so",
        "libmsan.so", "libclang_rt.asan", "libclang_rt.tsan", "libclang_rt.hwasan", "libclang_rt.msan",
        "libclang_rt.lsan"};
    char name[24];
    if (entry->d_tag != DT_NEEDED || !image->texts) return false;
    read_text(image, image->texts + entry->d_un.d_val, name, sizeof name);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (starts_with(name, libraries[i])) return true;
    return false;
}

/* ---- the symbols that the program offers to its libraries ---- */

static uint32_t hash_of(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++) hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static bool symbol_is(const struct image *image, uint64_t number, const char *name) {
    Elf64_Sym symbol;
    char text[24];
    if (!read_at(image, image->symbols + number * sizeof symbol, &symbol, sizeof symbol)) return false;
    if (symbol.st_shndx == SHN_UNDEF) return false;
    read_text(image, image->texts + symbol.st_name, text, sizeof text);
    return strcmp(text, name) == 0;
}

/* Looks a symbol up in .gnu.hash, as the dynamic linker does: the header, a filter of 64-bit words, the buckets with
 * the first symbol of each, and the hashes of all symbols, of which the last of a bucket has the lowest bit set. */
static bool defines(const struct image *image, const char *name) {
    struct {
        uint32_t buckets, first_symbol, filter_words, filter_shift;
    } table;
    if (!image->hashes || !image->symbols || !image->texts) return false;
    if (!read_at(image, image->hashes, &table, sizeof table) || !table.buckets || !table.filter_words)
        return false;
    uint32_t hash = hash_of(name), number, found = 0;
    uint64_t at = image->hashes + sizeof table, word;
    if (!read_at(image, at + hash / 64 % table.filter_words * 8, &word, sizeof word)) return false;
    if (!(word >> hash % 64 & word >> (hash >> table.filter_shift % 32) % 64 & 1)) return false;
    at += UINT64_C(8) * table.filter_words;
    if (!read_at(image, at + UINT64_C(4) * (hash % table.buckets), &number, sizeof number)) return false;
    if (number < table.first_symbol) return false;
    at += UINT64_C(4) * table.buckets;
    for (uint32_t i = 0; i < CHAIN_MOST && !(found & 1); i++, number++) {
        if (!read_at(image, at + UINT64_C(4) * (number - table.first_symbol), &found, sizeof found))
            return false;
        if ((found | 1) == (hash | 1) && symbol_is(image, number, name)) return true;
    }
    return false;
}

/* Clang links the sanitizers' runtime into the program, which then offers its functions. */
static bool defines_sanitizer(const struct image *image) {
    return defines(image, "__asan_init") || defines(image, "__tsan_init") || defines(image, "__msan_init") ||
           defines(image, "__hwasan_init") || defines(image, "__lsan_init");
}

/* ---- the verdict ---- */

static bool is_glibc_loader(const char *name) {
    return starts_with(name, "ld-linux") || starts_with(name, "ld64.so") || starts_with(name, "ld-2.") ||
           starts_with(name, "ld.so");
}

/* A program without an interpreter is statically linked, or it is a loader itself: "ld-linux-x86-64.so.2 PROGRAM". */
static struct exec_elf judge_static(const struct image *image) {
    if (!image->has_soname) return (struct exec_elf){UNRECORDED_STATIC, true};
    if (is_glibc_loader(image->soname)) return (struct exec_elf){UNRECORDED_NONE, true};
    return (struct exec_elf){UNRECORDED_OTHER_LIBC, false};
}

static struct exec_elf judge(struct image *image) {
    each_entry(image, take_tables);
    each_entry(image, take_soname);
    if (!image->has_interpreter) return judge_static(image);
    const char *slash = strrchr(image->interpreter, '/');
    if (!is_glibc_loader(slash ? slash + 1 : image->interpreter))
        return (struct exec_elf){UNRECORDED_OTHER_LIBC, false};
    if (each_entry(image, takes_sanitizer) || defines_sanitizer(image))
        return (struct exec_elf){UNRECORDED_SANITIZER, false};
    if (defines(image, "malloc")) return (struct exec_elf){UNRECORDED_OWN_MALLOC, true};
    return (struct exec_elf){UNRECORDED_NONE, true};
}

struct exec_elf exec_elf_read(int file) {
    struct image image;
    Elf64_Ehdr header;
    image.file = file;
    if (!read_at(&image, 0, &header, sizeof header)) return (struct exec_elf){UNRECORDED_NONE, true};
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != OWN_MACHINE)
        return (struct exec_elf){UNRECORDED_MACHINE, false};
    if (header.e_phentsize != sizeof(Elf64_Phdr)) return (struct exec_elf){UNRECORDED_NONE, true};
    memset(&image, 0, sizeof image);
    image.file = file;
    read_headers(&image, &header);
    return judge(&image);
}
