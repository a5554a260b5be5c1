#include "cli/command/command.h"
#include "cli/options/options.h"
#include "cli/output/page.h"
#include "cli/terminal/message.h"
#include "cli/words/summary.h"

static const char about[] =
    "Writes a page for a browser: flame graph, timeline of the heap and sites, in one file that needs no\n"
    "network and no server.\n" SOURCE_HELP "\n\n"
    "On a terminal the page goes to a file named after the recording; otherwise to stdout, or where -o "
    "says.\n\n"
    "The page holds names of functions, ends of paths, and lines of source files that are here (--no-source\n"
    "leaves them out). It holds neither command line nor whole paths unless --full is given.";

static const char examples[] = "  malloscope flame malloscope.server.4711.mscope\n"
                               "  malloscope flame 4711 -o now.html              a running program\n"
                               "  malloscope flame r.mscope --sort peak --filter 'json|xml' -o json.html";

int command_flame(int argc, char **argv) {
    struct page_output page = {.options.nodes_max = PAGE_NODES};
    struct load_options load_options = {0};
    int sort = SORT_LIVE;
    struct option_rule rules[] = {
        {'s', "sort", OPTION_CHOICE, &sort, "KEY",
            .help = "which figure the page begins with (default live, or peak\nif the program has ended and "
                    "nearly nothing is live):",
            .choices = shared_sort_names},
        {'F', "filter", OPTION_TEXT, &page.options.filter, "RE",
            .help =
                "only stacks in which a function, file or module matches\nthis extended regular expression"},
        OUTPUT_RULES(page.output),
        PAGE_RULES(page),
        {0, "raw-site", OPTION_ON, &page.options.raw_sites, NULL,
            .help = "go down into operator new, containers, strdup, ..."},
        LOAD_RULES(load_options),
    };
    struct command_line line = {.name = "flame",
        .usage = "malloscope flame [OPTION]... FILE|PID... [-o OUT.html]",
        .about = about,
        .examples = examples,
        .rules = rules,
        .rule_count = sizeof rules / sizeof *rules,
        .arguments_min = 1,
        .arguments_max = (size_t)-1};
    enum options_result parsed = options_parse(&line, argc, argv);
    if (parsed != OPTIONS_FINE) return parsed == OPTIONS_WRONG ? PROBLEM_USAGE : message_finish_output();

    struct loaded loaded;
    int code = load_sources(line.arguments, line.argument_count, &load_options, &loaded);
    if (code) return code;
    page.options.sort = rules[0].given ? (enum view_sort)sort : summary_default_sort(loaded.model);
    page.options.sysroot = load_options.sysroot;
    code = page_write(&loaded, &page, line.arguments, line.argument_count);
    int end = load_finish(&loaded);
    return code ? code : end;
}
