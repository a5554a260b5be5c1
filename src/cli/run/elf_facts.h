/* What an executable's ELF headers and symbols say about how it gets its memory. */
#ifndef MALLOSCOPE_CLI_RUN_ELF_FACTS_H
#define MALLOSCOPE_CLI_RUN_ELF_FACTS_H

#include "base/problem.h"

#include <stdbool.h>

struct elf_facts {
    bool other_class;   /* not 64-bit */
    bool other_machine; /* not for the machine this command was built for */
    bool is_loader;     /* is itself a dynamic loader: ld-linux-x86-64.so.2 PROGRAM */
    char *loader;       /* the dynamic loader it asks for, or NULL: statically linked */
    bool defines_malloc;
    const char *inner_allocator; /* an allocator inside under names of its own: "jemalloc", ... or NULL */
    char *sanitizer;             /* libasan.so.8, ..., or NULL */
};

int elf_facts_read(int fd, const char *path, struct elf_facts *ret_facts, struct problem *problem);
void elf_facts_free(struct elf_facts *facts);

#endif
