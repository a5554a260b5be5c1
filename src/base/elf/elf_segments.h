/* The loaded segments of an ELF file (PT_LOAD): which bytes of the file belong at which link-time address. */
#ifndef MALLOSCOPE_BASE_ELF_ELF_SEGMENTS_H
#define MALLOSCOPE_BASE_ELF_ELF_SEGMENTS_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_segment {
    uint64_t address, memory_size;
    uint64_t file_offset, file_size; /* as the header says: a file that was cut short has less */
    bool has_code;                   /* is mapped executable */
};

/* All zero is a file without segments. */
struct elf_segments {
    struct elf_segment *list;
    size_t count;
};

void elf_segments_read(struct elf_segments *segments, Elf *elf);
void elf_segments_clear(struct elf_segments *segments);

/* The addresses [*ret_low, *ret_high) that enclose all segments with code; empty if there are none. */
void elf_segments_code_range(const struct elf_segments *segments, uint64_t *ret_low, uint64_t *ret_high);

#endif
