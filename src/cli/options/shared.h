/* What several commands have in common: choices and help of options, and sentences of their help. */
#ifndef MALLOSCOPE_CLI_OPTIONS_SHARED_H
#define MALLOSCOPE_CLI_OPTIONS_SHARED_H

/* Choices of --by and --sort, in the order of enum view_by and enum view_sort; each list ends with NULL. */
extern const char *const shared_by_names[];
extern const char *const shared_sort_names[];

/* The option --filter. Its value goes to `target`, a const char *. */
#define FILTER_RULE(target)                                                                                  \
    { 'F', "filter", OPTION_TEXT, &(target), "RE", .help = FILTER_HELP }
#define FILTER_HELP                                                                                          \
    "only stacks in which a function, file, module, scope, type or\n"                                        \
    "heap matches this extended regular expression"

#define SUPPRESSIONS_HELP                                                                                    \
    "leave out the stacks that this file names, in the form of\nLeakSanitizer: lines of leak:PATTERN"

#define SOURCE_HELP_ONE                                                                                      \
    "FILE is a recording (*.mscope) or an archive of one (*.mscar); PID is a running program that was\n"     \
    "started with 'malloscope run' (or that command's own number, $!), or attached to."

#define SOURCE_HELP                                                                                          \
    "FILE is a recording (*.mscope), an archive (*.mscar) or a folder of recordings; PID is a running\n"     \
    "program that was started with 'malloscope run' (or that command's own number, $!), or attached to.\n"   \
    "Several are added up."

#endif
