/* The executable `malloscope-commands`, which has all commands. `malloscope` becomes it by execv for everything but
 * a run without gates (malloscope.c). */
#include "base/memory.h"
#include "cli/command/command.h"
#include "cli/terminal/message.h"
#include "cli/terminal/terminal.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

int main(int argc, char **argv) {
    prctl(PR_SET_NAME, "malloscope"); /* the name under which users look for it with ps and pidof */
    memory_move_large_blocks();
    terminal_choose_glyphs();
    if (argc < 2) {
        command_help(1, (char *[]){"help", NULL});
        return 2;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return command_help(1, (char *[]){"help", NULL});
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) return message_version();
    const struct command *command = command_find(name);
    return command ? command->run(argc - 1, argv + 1) : command_unknown(name);
}
