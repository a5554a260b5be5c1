/* How a mapping is read while another thread may be unmapping it.
 *
 * safe_read copies by process_vm_readv, which fails where a load would fault. That costs a microsecond. So
 * mappings that are never unmapped (`permanent`) are read directly: the program itself, libc, the dynamic
 * linker, the vdso and all that was loaded when the program started, since the loader never unmaps what the
 * program depends on. */
#include "unwind/mapping.h"

#include "platform/program_headers.h"

#include <elf.h>
#include <string.h>

bool mapping_copy(const struct mapping *mapping, void *target, uint64_t address, uint64_t size) {
    if (address < mapping->data_low || address > mapping->data_high || size > mapping->data_high - address)
        return false;
    if (!mapping->permanent) return mapping_copy_code(mapping, target, address, size);
    memcpy(target, (const void *)address, size);
    return true;
}

bool mapping_copy_code(const struct mapping *mapping, void *target, uint64_t address, uint64_t size) {
    return mapping && mapping->reader ? mapping->reader(mapping, target, address, size)
                                      : safe_read(target, address, size);
}

bool mapping_copy_header(const struct mapping *mapping, uint8_t target[MAPPING_IDENTITY_SIZE]) {
    uint64_t size = mapping->data_high - mapping->header;
    if (size > MAPPING_IDENTITY_SIZE) size = MAPPING_IDENTITY_SIZE;
    memset(target + size, 0, MAPPING_IDENTITY_SIZE - size);
    return mapping_copy(mapping, target, mapping->header, size);
}

uint64_t mapping_identity(const uint8_t bytes[MAPPING_IDENTITY_SIZE]) {
    uint64_t identity = 0, word;
    for (int i = 0; i < MAPPING_IDENTITY_SIZE; i += 8) {
        memcpy(&word, bytes + i, 8);
        identity = (identity ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        identity ^= identity >> 29;
    }
    return identity;
}

/* Four hashes side by side: the processor computes them at the same time, since none needs the result of another. */
static uint64_t page_fingerprint(const uint8_t page[PAGE_SIZE_MIN]) {
    uint64_t lane[4] = {1, 2, 3, 4}, word;
    for (unsigned i = 0; i < PAGE_SIZE_MIN; i += 8) {
        memcpy(&word, page + i, 8);
        lane[i / 8 % 4] = (lane[i / 8 % 4] + word) * UINT64_C(0x9e3779b97f4a7c15);
        lane[i / 8 % 4] ^= lane[i / 8 % 4] >> 32;
    }
    uint64_t fingerprint = ((lane[0] * 31 + lane[1]) * 31 + lane[2]) * 31 + lane[3];
    return fingerprint ? fingerprint : 1;
}

bool mapping_is_there(const struct mapping *mapping, uint8_t page[PAGE_SIZE_MIN]) {
    return safe_read(page, mapping->base, PAGE_SIZE_MIN) && page_fingerprint(page) == mapping->fingerprint;
}

/* Where a copy of the program headers is, or NULL. Most files have them in their first page, of which `page` is a copy.
 * Others are copied into `page`. */
static const uint8_t *program_headers(
    const struct mapping *mapping, const Elf64_Ehdr *elf, uint8_t page[PAGE_SIZE_MIN]) {
    if (elf->e_phentsize != sizeof(Elf64_Phdr)) return NULL;
    if (elf->e_phoff <= PAGE_SIZE_MIN && elf->e_phnum <= (PAGE_SIZE_MIN - elf->e_phoff) / sizeof(Elf64_Phdr))
        return page + elf->e_phoff;
    struct program_headers_place place = {mapping->base, mapping->start, mapping->end, mapping->file_offset};
    return program_headers_copy(elf, &place, (Elf64_Phdr *)page, PAGE_SIZE_MIN / sizeof(Elf64_Phdr)) ? page
                                                                                                     : NULL;
}

/* The program headers tell where the unwind information is. */
void mapping_read_headers(struct mapping *mapping, uint8_t page[PAGE_SIZE_MIN]) {
    mapping->header = mapping->fingerprint = 0;
    mapping->unread = 1;
    if (mapping->permanent)
        memcpy(page, (const void *)mapping->base, PAGE_SIZE_MIN);
    else if (!safe_read(page, mapping->base, PAGE_SIZE_MIN))
        return;
    mapping->unread = 0;
    if (!mapping->permanent) mapping->fingerprint = page_fingerprint(page);

    Elf64_Ehdr elf;
    memcpy(&elf, page, sizeof elf);
    if (memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64) return;
    const uint8_t *table = program_headers(mapping, &elf, page);
    if (!table) return;

    Elf64_Phdr segment, unwind = {.p_type = PT_NULL};
    bool biased = false;
    uint64_t bias = 0;
    for (unsigned i = 0; i < elf.e_phnum; i++) {
        memcpy(&segment, table + i * sizeof segment, sizeof segment);
        if (segment.p_type == PT_GNU_EH_FRAME) unwind = segment;
        if (segment.p_type == PT_LOAD && segment.p_offset < PAGE_SIZE_MIN && !biased) {
            bias = mapping->base - (segment.p_vaddr - segment.p_offset);
            biased = true;
        }
    }
    if (!biased || unwind.p_type != PT_GNU_EH_FRAME) return;

    for (unsigned i = 0; i < elf.e_phnum; i++) {
        memcpy(&segment, table + i * sizeof segment, sizeof segment);
        uint64_t inside = unwind.p_vaddr - segment.p_vaddr;
        if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_R) || inside >= segment.p_filesz) continue;
        if (unwind.p_memsz > segment.p_filesz - inside) return;
        mapping->data_low = bias + segment.p_vaddr;
        mapping->data_high = mapping->data_low + segment.p_filesz;
        mapping->header = bias + unwind.p_vaddr;
        mapping->header_size = unwind.p_memsz;
        if (mapping->data_low > mapping->data_high) mapping->header = 0;
    }
    uint8_t first[MAPPING_IDENTITY_SIZE];
    if (mapping->header == 0) return;
    mapping->unread = !mapping_copy_header(mapping, first);
    if (!mapping->unread) mapping->identity = mapping_identity(first);
}
