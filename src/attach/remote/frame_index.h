/* A search table for a file that has .eh_frame but no .eh_frame_hdr: linkers make none for statically linked
 * programs. */
#ifndef MALLOSCOPE_ATTACH_REMOTE_FRAME_INDEX_H
#define MALLOSCOPE_ATTACH_REMOTE_FRAME_INDEX_H

#include "attach/remote/module_bytes.h"

/* Makes the table and adds it to `bytes`. `elf` is the file's header, `bias` what is added to the file's addresses. The
 * table is in the tool's memory, and stands for the addresses from `free_address` on, which must lie above all that the
 * program has loaded. If the file has no .eh_frame, `bytes` stays as it is. */
void frame_index_make(
    struct module_bytes *bytes, int file, const Elf64_Ehdr *elf, uint64_t bias, uint64_t free_address);

#endif
