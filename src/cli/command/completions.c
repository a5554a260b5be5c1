#include "base/memory.h"
#include "base/open_regular.h"
#include "cli/command/command.h"
#include "cli/completion/completion.h"
#include "cli/terminal/message.h"
#include "cli/terminal/text.h"
#include "core/recording.h"
#include "model/running_processes.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const shells[] = {"bash", "zsh", "fish", NULL};
static void (*const writers[])(FILE *) = {completion_write_bash, completion_write_zsh, completion_write_fish};

static const char about[] =
    "Writes a script that completes command lines of malloscope: commands, options, their values,\n"
    "recordings and the processes that are being recorded. It is made from the tables of the commands\n"
    "themselves, so it fits this version. './dev install' puts it where the shells look for it;\n"
    "elsewhere, load it as below.";

static const char examples[] =
    "  source <(malloscope completions bash)                    in ~/.bashrc\n"
    "  source <(malloscope completions zsh)                     in ~/.zshrc, after compinit\n"
    "  malloscope completions fish > ~/.config/fish/completions/malloscope.fish";

/* Which process is recorded in the recording that `process` writes: `process` itself, or, if `process` is a running
 * 'malloscope attach', the process that it is attached to. */
static int recorded_pid(const struct running_process *process) {
    struct recording_header header;
    int file = open_regular(AT_FDCWD, process->recording, 0);
    bool has_read = file >= 0 && pread(file, &header, sizeof header, 0) == (ssize_t)sizeof header;
    if (file >= 0) close(file);
    return has_read && header.writer == process->pid ? header.pid : process->pid;
}

static void print_process(int pid) {
    char path[32], name[64] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *file = fopen(path, "r");
    if (!file) return;
    if (fgets(name, sizeof name, file)) {
        name[strcspn(name, "\n")] = '\0';
        cleanup_text char *clean = text_clean(name);
        printf("%d\t%s\n", pid, clean);
    }
    fclose(file);
}

static int print_processes(void) {
    struct running_processes running = {0};
    running_processes_update(&running, 0);
    for (size_t i = 0; i < running.count; i++)
        if (running.list[i].recording) print_process(recorded_pid(&running.list[i]));
    running_processes_free(&running);
    return message_finish_output();
}

int command_completions(int argc, char **argv) {
    bool processes = false;
    struct option_rule rules[] = {
        {0, "processes", OPTION_ON, &processes, NULL,
            .help = "list the processes that are being recorded in place of it,\nwith their names: what the "
                    "scripts ask for"},
    };
    struct command_line line = {.name = "completions",
        .usage = "malloscope completions bash|zsh|fish",
        OPTIONS_TABLE(rules, about, examples),
        .arguments_max = 1,
        .argument_kind = ARGUMENT_CHOICE,
        .argument_choices = shells};
    int code;
    if (!options_begin(&line, argc, argv, &code)) return code;
    if (processes && !line.argument_count) return print_processes();
    if (processes || !line.argument_count)
        return message_error(PROBLEM_USAGE,
            "name one of bash, zsh and fish, for instance: malloscope completions bash",
            processes ? "--processes is not for a shell" : "'completions' needs the name of a shell");
    for (size_t i = 0; shells[i]; i++)
        if (strcmp(shells[i], line.arguments[0]) == 0) {
            writers[i](stdout);
            return message_finish_output();
        }
    return message_error(PROBLEM_USAGE, "there are scripts for bash, zsh and fish", "there is none for '%s'",
        line.arguments[0]);
}
