/* A search table for an bytes whose file has .eh_frame but no .eh_frame_hdr: linkers make none for statically
 * linked programs. */
#ifndef MALLOSCOPE_ATTACH_REMOTE_FRAME_INDEX_H
#define MALLOSCOPE_ATTACH_REMOTE_FRAME_INDEX_H

#include "attach/remote/module_bytes.h"

/* `elf` is the file's header, `bias` what is added to its addresses, `free_address` one above all that is
 * loaded: the table is given the addresses from there on. Leaves the bytes as it is if there is nothing to
 * search. */
void frame_index_make(
    struct module_bytes *bytes, int file, const Elf64_Ehdr *elf, uint64_t bias, uint64_t free_address);

#endif
