#include "base/memory.h"
#include "cli/command/command.h"
#include "cli/input/load.h"
#include "cli/options/options.h"
#include "cli/terminal/message.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"
#include "cli/words/advice.h"
#include "cli/words/estimate_text.h"
#include "cli/words/notes.h"
#include "cli/words/site_text.h"
#include "cli/words/summary.h"

#include <stdlib.h>
#include <string.h>

struct tree {
    struct terminal terminal;
    int sort;
    double whole;   /* the value that is 100 % */
    double least;   /* nodes of a smaller value are not shown */
    uint64_t depth; /* 0 = no limit */
    bool full_names, exact;
    char indent[256]; /* what is printed before the branch of a node: trunks and blanks */
};

static const char about[] =
    "Shows the call tree, from the start of the program down to the allocations.\n" SOURCE_HELP "\n\n"
    "A node's figure includes those below it; that of 'peak' is what was live when the whole heap was\n"
    "largest. The tree goes one step to the right only where it branches, so that long chains of single\n"
    "callers stay readable.";

static const char examples[] = "  malloscope tree malloscope.server.4711.mscope\n"
                               "  malloscope tree 4711 --sort peak --min 5\n"
                               "  malloscope tree r.mscope --filter libcrypto --depth 12";

static char *figure_text(const struct tree *tree, double value) {
    bool objects = tree->sort == SORT_ALLOCS || tree->sort == SORT_TEMPORARY;
    return memory_copy_text(objects ? units_count(value).text : units_bytes(value).text);
}

#define ERROR_WIDTH 6 /* "±12.5%", with a blank before it; as many columns as characters */

static void print_figures(const struct tree *tree, struct estimate estimate) {
    double value = estimate.value;
    cleanup_text char *figure = figure_text(tree, value);
    cleanup_text char *error = estimate_text_share(estimate);
    printf("%6.1f%%  %9s  ", tree->whole > 0 ? 100 * value / tree->whole : 0, figure);
    if (tree->exact) return;
    size_t width = error ? text_width(error) : 0;
    printf("%*s%s  ", width < ERROR_WIDTH ? (int)(ERROR_WIDTH - width) : 0, "", error ? error : "");
}

static void print_line(const struct tree *tree, const char *branch, const struct view_node *node) {
    enum { FIGURES = 20 };
    print_figures(tree, view_sort_estimate(&node->figures, (enum view_sort)tree->sort));
    printf("%s%s%s%s", tree->terminal.dim, tree->indent, branch, tree->terminal.plain);
    size_t figures = tree->exact ? FIGURES : FIGURES + ERROR_WIDTH + 2;
    size_t used = figures + text_width(tree->indent) + text_width(branch);
    struct place_text text =
        site_text(node->function, node->file, node->line, node->module, tree->full_names);
    size_t room = tree->terminal.width > used + 8 ? tree->terminal.width - used : 8;
    place_text_print(text, tree->terminal.width ? room : 0, &tree->terminal);
    place_text_free(&text);
    putchar('\n');
}

static size_t shown_children(const struct tree *tree, const struct view_node *node) {
    size_t shown = 0;
    while (shown < node->child_count) {
        double value = view_sort_value(&node->children[shown].figures, (enum view_sort)tree->sort);
        if (value <= 0 || value < tree->least) break;
        shown++;
    }
    return shown;
}

/* The sum of the children that are not shown. 0 if the sum itself is too small to be shown. */
static struct estimate hidden_value(const struct tree *tree, const struct view_node *node, size_t shown) {
    struct estimate sum = {0};
    for (size_t i = shown; i < node->child_count; i++)
        sum = estimate_add(sum, view_sort_estimate(&node->children[i].figures, (enum view_sort)tree->sort));
    return sum.value >= tree->least ? sum : (struct estimate){0};
}

/* Moves the nodes below to the right. Returns false if that would leave too little room for names: the tree takes at
 * most half of the width. */
static bool widen_indent(struct tree *tree, const char *part) {
    size_t used = strlen(tree->indent);
    size_t limit = tree->terminal.width > 60 ? (tree->terminal.width - 20) / 2 : 20;
    if (tree->terminal.width == 0) limit = 120;
    if (text_width(tree->indent) + text_width(part) > limit || used + strlen(part) + 1 > sizeof tree->indent)
        return false;
    strcat(tree->indent, part);
    return true;
}

static void print_children(struct tree *tree, const struct view_node *node, uint64_t depth);

static void print_child(
    struct tree *tree, const struct view_node *child, bool branches, bool is_last, uint64_t depth) {
    char branch[16] = "", trunk[16] = "";
    if (branches) {
        snprintf(branch, sizeof branch, "%s ",
            is_last ? terminal_glyphs()->last_branch : terminal_glyphs()->branch);
        snprintf(trunk, sizeof trunk, "%s ", is_last ? " " : terminal_glyphs()->trunk);
    }
    print_line(tree, branch, child);
    size_t used = strlen(tree->indent);
    widen_indent(tree, trunk);
    print_children(tree, child, depth + 1);
    tree->indent[used] = 0;
}

static void print_children(struct tree *tree, const struct view_node *node, uint64_t depth) {
    size_t shown = shown_children(tree, node);
    if (tree->depth && depth > tree->depth) return;
    struct estimate hidden = hidden_value(tree, node, shown);
    bool tells_rest = hidden.value > 0;
    bool branches = shown + tells_rest > 1;
    for (size_t i = 0; i < shown; i++)
        print_child(tree, &node->children[i], branches, i + 1 == shown && !tells_rest, depth);
    if (tells_rest) {
        print_figures(tree, hidden);
        printf("%s%s%s%s %zu more, each below the limit of --min%s\n", tree->terminal.dim, tree->indent,
            branches ? terminal_glyphs()->last_branch : "", branches ? "" : " ", node->child_count - shown,
            tree->terminal.plain);
    }
}

int command_tree(int argc, char **argv) {
    struct tree tree = {.terminal = terminal_of(stdout)};
    double percent = 1;
    const char *filter = NULL;
    bool raw_site = false, sort_given = false;
    struct load_options load_options = {0};
    struct option_rule rules[] = {
        {'s', "sort", OPTION_CHOICE, &tree.sort, "KEY", .ret_given = &sort_given,
            .help = "which figure to show, largest first (default live,\nor peak if the program has ended "
                    "and nearly nothing is live):",
            .choices = shared_sort_names},
        {'m', "min", OPTION_PERCENT, &percent, "PERCENT",
            .help = "leave out what is smaller (default 1; 0 = show all)"},
        {'d', "depth", OPTION_COUNT, &tree.depth, "N", .help = "go down N calls at most (default 0 = all)"},
        FILTER_RULE(filter),
        {0, "raw-site", OPTION_ON, &raw_site, NULL,
            .help = "go down into operator new, containers, strdup, ..."},
        {'v', "verbose", OPTION_ON, &tree.full_names, NULL, .help = "names in full, with all arguments"},
        LOAD_RULES(load_options),
    };
    struct command_line line = {.name = "tree",
        .usage = "malloscope tree [OPTION]... FILE|PID...",
        OPTIONS_TABLE(rules, about, examples),
        ARGUMENTS_SOURCES};
    int code;
    struct loaded loaded;
    if (!load_begin(&line, argc, argv, &load_options, &loaded, &code)) return code;
    if (!sort_given) tree.sort = summary_default_sort(loaded.model);
    struct problem problem = {0};
    struct view_query query = {.sort = (enum view_sort)tree.sort, .filter = filter, .raw_sites = raw_site};
    struct progress progress;
    progress_start(&progress, PROGRESS_GROUPING);
    struct view_node *root = view_tree_query(loaded.model, loaded.resolver, &query, &problem);
    progress_end(&progress);
    if (!root) {
        load_free(&loaded);
        return message_problem(&problem);
    }
    summary_print(stdout, loaded.model);
    notes_print(stdout, loaded.model, query.sort);
    advice_print(stdout, &loaded, query.sort);
    if (!sort_given && query.sort != SORT_LIVE) notes_print_order(stdout, "what was live at the heap's peak");
    if (filter) notes_print_samples(stdout, loaded.model, &root->figures, "what matches rest", query.sort);
    putchar('\n');
    tree.exact = loaded.model->exact;
    tree.whole = view_sort_value(&root->figures, query.sort);
    tree.least = tree.whole * percent / 100;
    root->function = filter ? "[all that matches]" : "[all]";
    print_line(&tree, "", root);
    print_children(&tree, root, 1);
    view_tree_free(root);
    return load_finish(&loaded);
}
