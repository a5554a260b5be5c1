#include "cli/command/command.h"
#include "cli/options/options.h"
#include "cli/output/page.h"
#include "cli/terminal/message.h"
#include "cli/words/summary.h"

static const char about[] =
    "Writes a page for a browser: flame graph, timeline of the heap and sites, in one file that needs no\n"
    "network and no server.\n" SOURCE_HELP "\n\n"
    "On a terminal the page goes to a file named after the recording; otherwise to stdout, or where -o\n"
    "says.\n\n"
    "The page holds names of functions, ends of paths, and lines of source files that are here\n"
    "(--no-source leaves them out). It holds neither the command line nor whole paths unless --full is\n"
    "given.";

static const char examples[] = "  malloscope flame malloscope.server.4711.mscope\n"
                               "  malloscope flame 4711 -o now.html              a running program\n"
                               "  malloscope flame r.mscope --sort peak --filter 'json|xml' -o json.html";

int command_flame(int argc, char **argv) {
    struct page_output page = {.options.nodes_max = PAGE_NODES};
    struct load_options load_options = {0};
    int sort = SORT_LIVE;
    bool sort_given = false;
    struct option_rule rules[] = {
        {'s', "sort", OPTION_CHOICE, &sort, "KEY", .ret_given = &sort_given,
            .help = "which figure the page begins with (default live, or peak\nif the program has ended and "
                    "nearly nothing is live):",
            .choices = shared_sort_names},
        FILTER_RULE(page.options.filter),
        OUTPUT_RULES(page.output),
        PAGE_RULES(page),
        {0, "raw-site", OPTION_ON, &page.options.raw_sites, NULL,
            .help = "go down into operator new, containers, strdup, ..."},
        LOAD_RULES(load_options),
    };
    struct command_line line = {.name = "flame",
        .usage = "malloscope flame [OPTION]... FILE|PID... [-o OUT.html]",
        OPTIONS_TABLE(rules, about, examples),
        ARGUMENTS_SOURCES};
    int code;
    struct loaded loaded;
    if (!load_begin(&line, argc, argv, &load_options, &loaded, &code)) return code;
    page.options.sort = sort_given ? (enum view_sort)sort : summary_default_sort(loaded.model);
    page.options.sysroot = load_options.sysroot;
    code = page_write(&loaded, &page, line.arguments, line.argument_count);
    int end = load_finish(&loaded);
    return code ? code : end;
}
