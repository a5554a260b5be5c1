/* What the ELF headers and symbols of an executable say about whether its allocations can be recorded. */
#ifndef MALLOSCOPE_CLI_RUN_ELF_FACTS_H
#define MALLOSCOPE_CLI_RUN_ELF_FACTS_H

#include "base/problem.h"

#include <stdbool.h>

struct elf_facts {
    bool other_class;   /* not 64-bit */
    bool other_machine; /* not for the machine this command was built for */
    bool is_loader;     /* the executable is itself a dynamic loader, as in "ld-linux-x86-64.so.2 PROGRAM" */
    char *loader;       /* path of the dynamic loader that it asks for; NULL: it is statically linked */
    bool defines_malloc;
    const char *inner_allocator; /* an allocator linked in under names of its own: "jemalloc"; or NULL */
    char *sanitizer;             /* the library or symbol of a sanitizer: "libasan.so.8"; or NULL */
};

int elf_facts_read(int fd, const char *path, struct elf_facts *ret_facts, struct problem *problem);
void elf_facts_free(struct elf_facts *facts);

#endif
