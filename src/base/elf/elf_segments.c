#include "base/elf/elf_segments.h"

#include "base/memory.h"

#include <gelf.h>
#include <stdlib.h>

void elf_segments_read(struct elf_segments *segments, Elf *elf) {
    size_t count;
    if (elf_getphdrnum(elf, &count) != 0) return;
    segments->list = memory_allocate_array(count ? count : 1, sizeof *segments->list);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_LOAD) continue;
        segments->list[segments->count++] = (struct elf_segment){
            .address = header.p_vaddr,
            .memory_size = header.p_memsz,
            .file_offset = header.p_offset,
            .file_size = header.p_filesz,
            .has_code = header.p_flags & PF_X,
        };
    }
}

void elf_segments_clear(struct elf_segments *segments) {
    free(segments->list);
    *segments = (struct elf_segments){0};
}

void elf_segments_code_range(const struct elf_segments *segments, uint64_t *ret_low, uint64_t *ret_high) {
    uint64_t low = UINT64_MAX, high = 0;
    for (size_t i = 0; i < segments->count; i++) {
        const struct elf_segment *segment = &segments->list[i];
        if (!segment->has_code) continue;
        if (segment->address < low) low = segment->address;
        if (segment->address + segment->memory_size > high) high = segment->address + segment->memory_size;
    }
    *ret_low = low;
    *ret_high = high;
}
