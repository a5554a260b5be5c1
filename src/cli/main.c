#include "cli/command.h"
#include "cli/message.h"
#include "cli/terminal.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

static int print_version(void) {
    puts("malloscope " MALLOSCOPE_VERSION);
    return message_finish_output();
}

int main(int argc, char **argv) {
    /* Large arrays grow by moving their pages, not by copying what is in them. */
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    terminal_choose_glyphs();
    if (argc < 2) {
        command_help(1, (char *[]){"help", NULL});
        return 2;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return command_help(1, (char *[]){"help", NULL});
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) return print_version();
    const struct command *command = command_find(name);
    return command ? command->run(argc - 1, argv + 1) : command_unknown(name);
}
