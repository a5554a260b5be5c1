/* The slots of an x86-64 ELF file: words that the dynamic linker fills in when it loads the file, most of them in
 * the global offset table. A relocation of each slot says with what. Calls of functions in other files go through
 * such slots:
 *
 *     call *slot(%rip) ───► slot ◄─── R_X86_64_GLOB_DAT malloc
 */
#ifndef MALLOSCOPE_BASE_ELF_ELF_SLOTS_H
#define MALLOSCOPE_BASE_ELF_ELF_SLOTS_H

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

enum elf_slot_kind {
    ELF_SLOT_FUNCTION = 1 << 0, /* the address of the function `name`, for calls (JUMP_SLOT, GLOB_DAT) */
    ELF_SLOT_POINTER = 1 << 1,  /* the address of `name`, as data (R_X86_64_64) */
    ELF_SLOT_LOCAL = 1 << 2,    /* the address `target` of this file, wherever that is loaded (RELATIVE) */
    ELF_SLOT_CHOSEN = 1 << 3,   /* what the function at `target` returns when it is called (IRELATIVE) */
};

struct elf_slot {
    uint64_t address;
    const char *name; /* owned by the Elf; NULL for the kinds that have a target */
    uint64_t target;
    enum elf_slot_kind kind;
};

/* All zero is a file without slots. */
struct elf_slots {
    struct elf_slot *list; /* sorted by address */
    size_t count, room;
    /* The addresses of the slots of .rela.plt, in its order: lazy stubs push an index into it. */
    uint64_t *lazy;
    size_t lazy_count;
};

/* Reads the slots of the given kinds (bits of enum elf_slot_kind). The Elf must outlive them. */
void elf_slots_read(struct elf_slots *slots, Elf *elf, unsigned kinds);
void elf_slots_clear(struct elf_slots *slots);

/* The slot at `address`, or NULL. */
const struct elf_slot *elf_slots_find(const struct elf_slots *slots, uint64_t address);

#endif
