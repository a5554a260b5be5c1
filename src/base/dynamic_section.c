#include "base/dynamic_section.h"

/* The parts of an object's dynamic section that are needed to look up a name. */
struct symbols {
    const ElfW(Sym) * entry;
    const char *text;
    const uint32_t *gnu_hash, *hash;
};

/* The address that a pointer in the dynamic section stands for. glibc's linker adds the object's base to these
 * pointers when it loads the object; in the kernel's vDSO they are offsets still. */
static const void *address_in(const struct link_map *object, ElfW(Addr) pointer) {
    return (const void *)(pointer < object->l_addr ? pointer + object->l_addr : pointer);
}

static struct symbols symbols_of(const struct link_map *object) {
    struct symbols symbols = {0};
    for (const ElfW(Dyn) *part = object->l_ld; part && part->d_tag != DT_NULL; part++) {
        const void *address = address_in(object, part->d_un.d_ptr);
        if (part->d_tag == DT_SYMTAB) symbols.entry = address;
        if (part->d_tag == DT_STRTAB) symbols.text = address;
        if (part->d_tag == DT_GNU_HASH) symbols.gnu_hash = address;
        if (part->d_tag == DT_HASH) symbols.hash = address;
    }
    return symbols;
}

bool dynamic_section_at(uint64_t header, struct link_map *ret_object) {
    const ElfW(Ehdr) *file = (const void *)header;
    const ElfW(Phdr) *part = (const void *)(header + file->e_phoff), *end = part + file->e_phnum,
                     *first = NULL;
    const ElfW(Phdr) *dynamic = NULL;
    for (; part < end; part++) {
        if (part->p_type == PT_LOAD && !first) first = part;
        if (part->p_type == PT_DYNAMIC) dynamic = part;
    }
    if (!first || !dynamic) return false;
    uint64_t base = header + first->p_offset - first->p_vaddr;
    *ret_object = (struct link_map){.l_addr = base, .l_ld = (void *)(base + dynamic->p_vaddr)};
    return true;
}

/* Not libc's strcmp: some libraries that are preloaded have their own, which allocates when it is first called. */
static bool is_equal(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

static bool is_definition(const struct symbols *symbols, uint32_t number, const char *name) {
    const ElfW(Sym) *symbol = &symbols->entry[number];
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value &&
           is_equal(symbols->text + symbol->st_name, name);
}

/* DT_GNU_HASH: a header of four words, a Bloom filter, the first symbol of each bucket, and for each symbol its
 * hash, whose lowest bit is set at the end of a bucket. */
static const ElfW(Sym) * find_by_gnu_hash(const struct symbols *symbols, const char *name) {
    uint32_t hash = 5381;
    for (const unsigned char *c = (const unsigned char *)name; *c; c++) hash = hash * 33 + *c;
    const uint32_t *table = symbols->gnu_hash;
    uint32_t buckets = table[0], first = table[1], filter_size = table[2], shift = table[3];
    const uint64_t *filter = (const uint64_t *)(table + 4);
    uint64_t word = filter[hash / 64 & (filter_size - 1)];
    if (buckets == 0 || !(word >> hash % 64 & word >> (hash >> shift) % 64 & 1)) return NULL;

    const uint32_t *bucket = (const uint32_t *)(filter + filter_size), *chain = bucket + buckets - first;
    uint32_t number = bucket[hash % buckets];
    if (number < first) return NULL;
    for (;; number++) {
        if ((chain[number] | 1) == (hash | 1) && is_definition(symbols, number, name))
            return &symbols->entry[number];
        if (chain[number] & 1) return NULL;
    }
}

/* For objects without DT_GNU_HASH: the second word of DT_HASH is the number of symbols. */
static const ElfW(Sym) * find_in_all(const struct symbols *symbols, const char *name) {
    for (uint32_t number = 0; number < symbols->hash[1]; number++)
        if (is_definition(symbols, number, name)) return &symbols->entry[number];
    return NULL;
}

const ElfW(Sym) * dynamic_section_find(const struct link_map *object, const char *name) {
    struct symbols symbols = symbols_of(object);
    if (!symbols.entry || !symbols.text) return NULL;
    return symbols.gnu_hash ? find_by_gnu_hash(&symbols, name)
           : symbols.hash   ? find_in_all(&symbols, name)
                            : NULL;
}

/* DT_GNU_HASH does not say how many symbols there are: the last one ends the bucket that begins last. */
static size_t count_by_gnu_hash(const uint32_t *table) {
    uint32_t buckets = table[0], first = table[1], filter_size = table[2], last = 0;
    const uint32_t *bucket = table + 4 + 2 * filter_size, *chain = bucket + buckets - first;
    for (uint32_t i = 0; i < buckets; i++)
        if (bucket[i] > last) last = bucket[i];
    if (last < first) return first;
    while (!(chain[last] & 1)) last++;
    return last + 1;
}

size_t dynamic_section_symbols(const struct link_map *object, ElfW(Sym) * *ret_symbols) {
    struct symbols symbols = symbols_of(object);
    *ret_symbols = (ElfW(Sym) *)symbols.entry;
    return !symbols.entry     ? 0
           : symbols.gnu_hash ? count_by_gnu_hash(symbols.gnu_hash)
           : symbols.hash     ? symbols.hash[1]
                              : 0;
}

struct relocations dynamic_section_relocations(const struct link_map *object) {
    struct symbols symbols = symbols_of(object);
    struct relocations found = {.symbols = symbols.entry, .text = symbols.text};
    for (const ElfW(Dyn) *part = object->l_ld; part && part->d_tag != DT_NULL; part++) {
        const void *address = address_in(object, part->d_un.d_ptr);
        if (part->d_tag == DT_RELA) found.tables[0] = address;
        if (part->d_tag == DT_JMPREL) found.tables[1] = address;
        if (part->d_tag == DT_RELASZ) found.counts[0] = part->d_un.d_val / sizeof(ElfW(Rela));
        if (part->d_tag == DT_PLTRELSZ) found.counts[1] = part->d_un.d_val / sizeof(ElfW(Rela));
    }
    return found;
}

const char *dynamic_section_relocation_name(
    const struct relocations *relocations, const ElfW(Rela) * relocation) {
    uint64_t number = ELF64_R_SYM(relocation->r_info);
    return number ? relocations->text + relocations->symbols[number].st_name : "";
}
