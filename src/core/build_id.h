/* The build-id of an ELF file: the bytes by which its linker named it. */
#ifndef MALLOSCOPE_CORE_BUILD_ID_H
#define MALLOSCOPE_CORE_BUILD_ID_H

#include "core/recording.h"

#include <elf.h>
#include <string.h>

#define BUILD_ID_MAX (sizeof((struct module_record *)0)->build_id)

/* Finds the build-id among the notes of a PT_NOTE segment, whose p_align is `alignment`. Returns its size, or 0 if
 * there is none, if it is longer than BUILD_ID_MAX, or if the notes make no sense. */
static inline uint8_t build_id_find(
    const uint8_t *notes, uint64_t size, uint64_t alignment, uint8_t ret_id[BUILD_ID_MAX]) {
    uint64_t mask = alignment == 8 ? 7 : 3; /* all others are multiples of 4 */
    for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= size;) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof note);
        uint64_t name = at + sizeof note, data = (name + note.n_namesz + mask) & ~mask;
        if (data > size || note.n_descsz > size - data) return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0 &&
            note.n_descsz <= BUILD_ID_MAX) {
            memcpy(ret_id, notes + data, note.n_descsz);
            return (uint8_t)note.n_descsz;
        }
        at = (data + note.n_descsz + mask) & ~mask;
    }
    return 0;
}

#endif
