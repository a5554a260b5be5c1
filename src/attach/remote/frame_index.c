/* The table has the format of .eh_frame_hdr, so that unwind/fde.c can search it like any other:
 *
 *     version 1, three encodings    4 bytes
 *     address of .eh_frame          4        left 0: nobody reads it
 *     number of entries             4
 *     begin of code, FDE            4 + 4    for each FDE, sorted, both relative to the table's start */
#include "attach/remote/frame_index.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/rule.h"

#define INFORMATION_MAX (UINT64_C(64) << 20) /* .eh_frame of a program of about a gigabyte */
#define TABLE_OFFSET    12

static const char section_name[] = ".eh_frame";
static const uint8_t encodings[4] = {1, 0x1b, 0x03, 0x3b};

struct index_entry {
    int32_t begin, fde;
};

static bool find_section(int file, const Elf64_Ehdr *elf, Elf64_Shdr *ret_section) {
    Elf64_Shdr names, section;
    char name[sizeof section_name];
    if (elf->e_shentsize != sizeof section || elf->e_shstrndx >= elf->e_shnum ||
        !module_bytes_read_at(file, &names, sizeof names, elf->e_shoff + elf->e_shstrndx * sizeof section))
        return false;
    for (uint64_t i = 0; i < elf->e_shnum; i++) {
        if (!module_bytes_read_at(file, &section, sizeof section, elf->e_shoff + i * sizeof section))
            return false;
        if (!(section.sh_flags & SHF_ALLOC) || section.sh_type == SHT_NOBITS) continue;
        if (!module_bytes_read_at(file, name, sizeof name, names.sh_offset + section.sh_name)) continue;
        if (memcmp(name, section_name, sizeof name) != 0) continue;
        *ret_section = section;
        return true;
    }
    return false;
}

static int by_begin(const void *left, const void *right) {
    int32_t a = ((const struct index_entry *)left)->begin, b = ((const struct index_entry *)right)->begin;
    return (a > b) - (a < b);
}

/* Notes each entry (FDE) of .eh_frame that is about code. What is read is the tool's own copy: it does not change. */
static uint32_t collect(const struct module_bytes *bytes, uint64_t table, struct index_entry *entries) {
    const struct module_bytes_part *information = &bytes->part[PART_UNWIND];
    uint64_t size = information->high - information->low, at = 0;
    uint32_t count = 0;
    while (size - at >= 8) {
        uint32_t length, id;
        memcpy(&length, information->bytes + at, 4);
        memcpy(&id, information->bytes + at + 4, 4);
        uint64_t address = information->low + at, begin, extent;
        if (length == 0) { /* the end of .eh_frame, or of the part that came from one object file */
            at += 4;
            continue;
        }
        if (length < 4 || length > size - at - 4) break;
        at += 4 + (uint64_t)length;
        if (id == 0 || !rule_extent(&bytes->mapping, address, &begin, &extent) || extent == 0) continue;
        int64_t relative_begin = (int64_t)(begin - table), relative_fde = (int64_t)(address - table);
        if (relative_begin != (int32_t)relative_begin || relative_fde != (int32_t)relative_fde) continue;
        entries[count++] = (struct index_entry){(int32_t)relative_begin, (int32_t)relative_fde};
    }
    return count;
}

void frame_index_make(
    struct module_bytes *bytes, int file, const Elf64_Ehdr *elf, uint64_t bias, uint64_t free_address) {
    Elf64_Shdr section;
    if (!find_section(file, elf, &section) || section.sh_size > INFORMATION_MAX) return;
    uint64_t low = bias + section.sh_addr, high = low + section.sh_size;
    uint8_t *copy = module_bytes_own_part(&bytes->part[PART_UNWIND], low, section.sh_size);
    if (!copy) return;
    uint64_t table = ((free_address > high ? free_address : high) + 7) & ~UINT64_C(7);
    /* An entry takes 8 bytes of the table, and at least 8 of .eh_frame: the table is no larger than the section. */
    uint64_t room = section.sh_size + MAPPING_IDENTITY_SIZE;
    uint8_t *header = module_bytes_own_part(&bytes->part[PART_INDEX], table, room);
    if (!header || !module_bytes_read_at(file, copy, section.sh_size, section.sh_offset)) {
        module_bytes_close(bytes);
        return;
    }
    bytes->mapping.data_low = low;
    bytes->mapping.data_high = high;
    struct index_entry *entries = (struct index_entry *)(header + TABLE_OFFSET);
    uint32_t count = collect(bytes, table, entries);
    qsort(entries, count, sizeof *entries, by_begin);
    memcpy(header, encodings, sizeof encodings);
    memcpy(header + 8, &count, sizeof count);
    bytes->mapping.data_high = table + room;
    bytes->mapping.header = table;
    bytes->mapping.header_size = room;
}
