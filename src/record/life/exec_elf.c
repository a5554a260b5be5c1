#include "record/life/exec_elf.h"

#include "platform/system.h"
#include "record/intercept/real_allocator.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>

#if defined(__x86_64__)
#define OWN_MACHINE   EM_X86_64
#define SYSTEM_LOADER "/lib64/ld-linux-x86-64.so.2"
#else
#define OWN_MACHINE   EM_AARCH64
#define SYSTEM_LOADER "/lib/ld-linux-aarch64.so.1"
#endif

/* Bounds for what a file may ask of us. Real programs stay far below. */
#define HEADERS_MOST  256  /* program headers */
#define LOADS_MOST    24   /* loaded segments that are known */
#define DYNAMIC_MOST  1024 /* entries of the dynamic section */
#define CHAIN_MOST    4096 /* symbols of one bucket of the hash table */
#define VERSIONS_MOST 256  /* versions that a library names */
#define BATCH         8    /* program headers that are read at once */
#define DYNAMIC_BATCH 32   /* entries of the dynamic section, likewise: mostly all of them */

/* The beginning of .gnu.hash. */
struct hash_header {
    uint32_t buckets, first_symbol, filter_words, filter_shift;
};

struct image {
    int file;
    size_t load_count;
    struct {
        uint64_t address, size, offset;
    } load[LOADS_MOST];
    uint64_t dynamic, dynamic_count; /* offset in the file, and number of entries */
    uint64_t texts, symbols, hashes; /* offsets in the file of .dynstr, .dynsym and .gnu.hash; 0 = none */
    uint64_t needs,
        offers; /* offsets of the versions of symbols that it needs, and that it defines; 0 = none */
    struct hash_header hash_header; /* zeroed if there is none */
    bool has_interpreter, has_soname;
    char interpreter[256]; /* its path */
    char soname[24];       /* cut */
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
        image->has_interpreter = true;
        /* A path that is too long is taken for that of glibc, which most are. */
        if (header->p_filesz < sizeof image->interpreter)
            read_text(image, header->p_offset, image->interpreter, header->p_filesz + 1);
        else
            memcpy(image->interpreter, SYSTEM_LOADER, sizeof SYSTEM_LOADER);
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
    Elf64_Dyn batch[DYNAMIC_BATCH];
    for (uint64_t i = 0, some; i < image->dynamic_count; i += some) {
        some = image->dynamic_count - i < DYNAMIC_BATCH ? image->dynamic_count - i : DYNAMIC_BATCH;
        if (!read_at(image, image->dynamic + i * sizeof *batch, batch, some * sizeof *batch)) return false;
        for (uint64_t k = 0; k < some; k++) {
            if (batch[k].d_tag == DT_NULL) return false;
            if (take(image, &batch[k])) return true;
        }
    }
    return false;
}

static bool take_tables(struct image *image, const Elf64_Dyn *entry) {
    if (entry->d_tag == DT_STRTAB) image->texts = offset_of(image, entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB) image->symbols = offset_of(image, entry->d_un.d_ptr);
    if (entry->d_tag == DT_GNU_HASH) image->hashes = offset_of(image, entry->d_un.d_ptr);
    if (entry->d_tag == DT_VERNEED) image->needs = offset_of(image, entry->d_un.d_ptr);
    if (entry->d_tag == DT_VERDEF) image->offers = offset_of(image, entry->d_un.d_ptr);
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
    struct hash_header table = image->hash_header;
    if (!image->symbols || !image->texts || !table.buckets || !table.filter_words) return false;
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

/* ---- another installation of glibc ---- */

/* The y of "GLIBC_2.y", or 0. */
static unsigned version_at(const struct image *image, uint64_t name) {
    static const char start[] = "GLIBC_2.";
    char text[16];
    unsigned version = 0;
    read_text(image, image->texts + name, text, sizeof text);
    if (!starts_with(text, start)) return 0;
    for (const char *digit = text + sizeof start - 1; *digit >= '0' && *digit <= '9'; digit++)
        version = version * 10 + (unsigned)(*digit - '0');
    return version;
}

/* The highest version of glibc that a library needs. */
static unsigned version_needed(const struct image *image) {
    unsigned highest = 0;
    uint64_t at = image->needs;
    Elf64_Verneed need = {.vn_next = 1};
    for (int i = 0; at && need.vn_next && i < VERSIONS_MOST; i++, at += need.vn_next) {
        if (!read_at(image, at, &need, sizeof need)) return highest;
        Elf64_Vernaux part = {.vna_next = 1};
        uint64_t part_at = at + need.vn_aux;
        for (int k = 0; k < need.vn_cnt && part.vna_next && k < VERSIONS_MOST;
             k++, part_at += part.vna_next) {
            if (!read_at(image, part_at, &part, sizeof part)) return highest;
            unsigned version = version_at(image, part.vna_name);
            if (version > highest) highest = version;
        }
    }
    return highest;
}

/* The highest version that a libc defines: it defines all before it, too. */
static unsigned version_offered(const struct image *image) {
    unsigned highest = 0;
    uint64_t at = image->offers;
    Elf64_Verdef definition = {.vd_next = 1};
    for (int i = 0; at && definition.vd_next && i < VERSIONS_MOST; i++, at += definition.vd_next) {
        Elf64_Verdaux name;
        if (!read_at(image, at, &definition, sizeof definition) ||
            !read_at(image, at + definition.vd_aux, &name, sizeof name))
            return highest;
        unsigned version = version_at(image, name.vda_name);
        if (version > highest) highest = version;
    }
    return highest;
}

static bool read_image(int file, struct image *image, Elf64_Ehdr *header) {
    memset(image, 0, sizeof *image);
    image->file = file;
    if (!read_at(image, 0, header, sizeof *header) || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_machine != OWN_MACHINE || header->e_phentsize != sizeof(Elf64_Phdr))
        return false;
    read_headers(image, header);
    each_entry(image, take_tables);
    return true;
}

/* What `version_of` says of the file at `path`; 0 if it cannot be read. */
static unsigned version_in(const char *path, unsigned (*version_of)(const struct image *)) {
    struct image image;
    Elf64_Ehdr header;
    int file = (int)system_call(
        SYS_openat, (uint64_t)(int64_t)AT_FDCWD, (uintptr_t)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
    if (file < 0) return 0;
    unsigned version = read_image(file, &image, &header) ? version_of(&image) : 0;
    system_call(SYS_close, (uint64_t)file, 0, 0, 0, 0, 0);
    return version;
}

/* Whether the program asks for a glibc that is older than the recorder can do with: its loader would end it. The libc
 * lies beside the loader. The system's own is the one that the recorder was made for. */
static bool has_older_glibc(const struct image *image) {
    static const char libc[] = "libc.so.6";
    char path[sizeof image->interpreter + sizeof libc];
    if (strcmp(image->interpreter, SYSTEM_LOADER) == 0) return false;
    size_t folder = (size_t)(strrchr(image->interpreter, '/') + 1 - image->interpreter);
    memcpy(path, image->interpreter, folder);
    memcpy(path + folder, libc, sizeof libc);
    unsigned offered = version_in(path, version_offered);
    return offered && offered < version_in(real_allocator_own_path(), version_needed);
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
    if (!image->has_interpreter) {
        each_entry(image, take_soname);
        return judge_static(image);
    }
    const char *slash = strrchr(image->interpreter, '/');
    if (!slash || !is_glibc_loader(slash + 1) || has_older_glibc(image))
        return (struct exec_elf){UNRECORDED_OTHER_LIBC, false};
    if (!image->hashes || !read_at(image, image->hashes, &image->hash_header, sizeof image->hash_header))
        image->hash_header.buckets = 0;
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
    if (!read_image(file, &image, &header)) return (struct exec_elf){UNRECORDED_NONE, true};
    return judge(&image);
}
