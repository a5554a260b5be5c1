#include "symbol/vdso.h"

#include <elf.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

/* The size of the vdso as a file. The whole file is mapped, and its section headers come last. */
static size_t size_of_image(const Elf64_Ehdr *header) {
    size_t size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
    const Elf64_Phdr *segments = (const void *)((const char *)header + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_offset + segments[i].p_filesz > size)
            size = segments[i].p_offset + segments[i].p_filesz;
    return size;
}

int vdso_open(void) {
    const Elf64_Ehdr *image = (const void *)getauxval(AT_SYSINFO_EHDR);
    if (!image) return -1;
    int fd = memfd_create("vdso", MFD_CLOEXEC);
    if (fd < 0) return -1;
    size_t size = size_of_image(image);
    if (write(fd, image, size) == (ssize_t)size) return fd;
    close(fd);
    return -1;
}
