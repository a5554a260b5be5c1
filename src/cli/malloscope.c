/* The command that users call, `malloscope`. It runs programs (`malloscope run`), and becomes the executable
 * malloscope-commands for every other command.
 *
 * The program that is to be recorded cannot start before this executable has started. So this executable is
 * small and linked with few libraries. The libraries for symbolization, formats, probes and the live screen are
 * linked into malloscope-commands alone. */
#include "base/memory.h"
#include "cli/command/command.h"
#include "cli/run/installed.h"
#include "cli/terminal/message.h"
#include "cli/terminal/terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int become_commands(char **argv) {
    cleanup_text char *path = installed_commands();
    if (!path)
        return message_error(PROBLEM_MISSING,
            "build or install malloscope whole; 'malloscope run' works without it, but for gates",
            "cannot find " INSTALLED_COMMANDS
            " beside the command, in its ../libexec, or in " MALLOSCOPE_LIBEXECDIR);
    execv(path, argv);
    int error = errno;
    return message_error(problem_kind_of_errno(error), "build or install malloscope anew",
        "cannot run '%s': %s", path, strerror(error));
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--version") == 0) return message_version();
    if (argc < 2 || strcmp(argv[1], "run") != 0) return become_commands(argv);
    memory_move_large_blocks();
    terminal_choose_glyphs();
    /* command_run gets a copy: it changes the order of its arguments, and become_commands needs the original one. */
    size_t count = (size_t)argc - 1;
    char **arguments = memory_allocate((count + 1) * sizeof *arguments);
    memcpy(arguments, argv + 1, count * sizeof *arguments);
    int code = command_run((int)count, arguments, NULL);
    free(arguments);
    return code == COMMAND_NEEDS_JUDGE ? become_commands(argv) : code;
}
