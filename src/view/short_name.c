#include "view/short_name.h"

#include "view/name_scan.h"

#include <string.h>

#define WORTH_A_MARK 8 /* arguments up to this length are not replaced by the mark */

static void cut(char *text, size_t from, size_t to) {
    memmove(text + from, text + to, strlen(text + to) + 1);
}

/* Replaces [from, to) by `with`, which is not longer. */
static void replace(char *text, size_t from, size_t to, const char *with) {
    size_t length = strlen(with);
    memcpy(text + from, with, length); /* NOLINT(bugprone-not-null-terminated-result): text goes on */
    cut(text, from + length, to);
}

/* ---- words ---- */

/* Replaces `from` wherever it begins a word and is not the end of a longer path. */
static void replace_words(char *text, const char *from, const char *to) {
    size_t length = strlen(from);
    for (char *at = text; (at = strstr(at, from));) {
        bool begins = at == text || !(name_scan_is_identifier(at[-1]) || at[-1] == ':');
        bool ends = !name_scan_is_identifier(from[length - 1]) || !name_scan_is_identifier(at[length]);
        if (begins && ends)
            replace(text, (size_t)(at - text), (size_t)(at - text) + length, to);
        else
            at += length;
    }
}

static void use_known_names(char *text) {
    static const char *const names[][2] = {
        {"std::__cxx11::", "std::"}, /* namespaces that tell versions of a library apart */
        {"std::__1::", "std::"},
        {"std::__ndk1::", "std::"},
        {"alloc::string::String", "String"}, /* well-known types of Rust, most of which need no import */
        {"alloc::vec::Vec", "Vec"},
        {"alloc::boxed::Box", "Box"},
        {"alloc::rc::Rc", "Rc"},
        {"alloc::sync::Arc", "Arc"},
        {"core::option::Option", "Option"},
        {"core::result::Result", "Result"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) replace_words(text, names[i][0], names[i][1]);
    for (char *tag; (tag = strstr(text, "[abi:")) && strchr(tag, ']');)
        cut(text, (size_t)(tag - text), (size_t)(strchr(tag, ']') + 1 - text));
}

/* "std::basic_ostream<char>" becomes std::ostream, "std::basic_ostream<wchar_t>" std::wostream. */
static void use_char_names(char *text) {
    static const char basic[] = "std::basic_";
    for (char *at = text; (at = strstr(at, basic)); at += 5) {
        char *word = at + strlen(basic), *end = word;
        while (name_scan_is_identifier(*end)) end++;
        bool wide = strncmp(end, "<wchar_t>", 9) == 0;
        size_t length = wide ? 9 : 6;
        if ((!wide && strncmp(end, "<char>", 6) != 0) || name_scan_is_identifier(end[length])) continue;
        cut(text, (size_t)(end - text), (size_t)(end - text) + length);
        replace(text, (size_t)(at + 5 - text), (size_t)(word - text), wide ? "w" : "");
    }
}

/* ---- arguments that nobody writes ---- */

static bool is_default(const char *argument) {
    static const char *const types[] = {"std::allocator<", "std::char_traits<", "std::less<", "std::hash<",
        "std::equal_to<", "std::default_delete<"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strncmp(argument, types[i], strlen(types[i])) == 0) return true;
    return false;
}

/* Whether the bracket at `open` holds template arguments of something in std. */
static bool is_of_std(const char *text, size_t open) {
    size_t start = open;
    while (start && (name_scan_is_identifier(text[start - 1]) || text[start - 1] == ':')) start--;
    return strncmp(text + start, "std::", 5) == 0;
}

/* Removes the last argument of a template in std, if it is the default for this argument. False: there is none. */
static bool drop_default(char *text) {
    struct name_scan scan = {.text = text};
    size_t comma[NAME_NESTING_MAX + 1] = {0}; /* the last one at each depth; 0 = none */
    for (;;) {
        size_t at = scan.at, depth = scan.depth;
        if (!name_scan_step(&scan)) return false;
        if (scan.depth > depth) comma[scan.depth] = 0;
        if (text[at] == ',' && scan.at == at + 1) comma[scan.depth] = at;
        if (!scan.closed || scan.last.kind != BRACKET_GENERIC || !comma[depth]) continue;
        size_t argument = comma[depth] + 1 + strspn(text + comma[depth] + 1, " ");
        if (!is_default(text + argument) || !is_of_std(text, scan.last.at)) continue;
        cut(text, comma[depth], at);
        return true;
    }
}

/* Removes the brackets of Rust's "<Type>::method", if the type is a plain path. False: there are none. */
static bool drop_qualified(char *text) {
    struct name_scan scan = {.text = text};
    size_t blank = 0; /* the last one within the outermost bracket */
    for (;;) {
        size_t at = scan.at;
        if (!name_scan_step(&scan)) return false;
        if (text[at] == ' ' && scan.depth == 1) blank = at;
        if (!scan.closed || scan.depth || scan.last.kind != BRACKET_QUALIFIED) continue;
        size_t open = scan.last.at;
        if (blank > open || !name_scan_is_identifier(text[open + 1]) || strncmp(text + at + 1, "::", 2) != 0)
            continue;
        cut(text, at, at + 1);
        cut(text, open, open + 1);
        return true;
    }
}

/* The demangler writes "> >", as C++98 needed it. */
static void join_brackets(char *text) {
    for (char *at = text; (at = strstr(at, "> >"));) {
        bool is_operator = at - text >= 8 && strncmp(at - 8, "operator", 8) == 0;
        if (!is_operator) cut(text, (size_t)(at + 1 - text), (size_t)(at + 2 - text));
        at += is_operator;
    }
}

/* Removes the return type, which the names of templates begin with. */
static void drop_return_type(char *text) {
    struct name_scan scan = {.text = text};
    size_t start = 0;
    for (;;) {
        size_t at = scan.at, depth = scan.depth;
        if (strncmp(text + at, "(anonymous namespace)", 21) == 0 && depth == 0) {
            scan.at += 21;
            continue;
        }
        bool in_operator = scan.after_operator || strncmp(text + at, "operator ", 9) == 0;
        if (depth == 0 && text[at] == '(') {
            if (text[at + 1] == '*' || text[at + 1] == '&') return; /* a pointer to a function is returned */
            if (at == 0 || text[at - 1] != ' ') break;              /* else it is that of "decltype (...)" */
        }
        if (!name_scan_step(&scan)) return;
        if (depth == 0 && in_operator && text[at] == 'o') break;
        if (depth == 0 && text[at] == ' ' && !in_operator) start = at + 1;
    }
    cut(text, 0, start);
}

/* ---- names that are still too long ---- */

/* "<Type as core::clone::Clone>" becomes "<Type as Clone>": the last part of a trait's path identifies it. False:
 * there is no trait to shorten. */
static bool drop_path_of_trait(char *text) {
    struct name_scan scan = {.text = text};
    for (;;) {
        size_t at = scan.at, path = at + 4, end = path;
        if (!name_scan_step(&scan)) return false;
        bool is_trait = scan.depth && scan.open[scan.depth - 1].kind == BRACKET_QUALIFIED &&
                        strncmp(text + at, " as ", 4) == 0;
        if (!is_trait) continue;
        while (name_scan_is_identifier(text[end]) || text[end] == ':') end++;
        if (text[end - 1] == ':') end -= 2; /* "Fn::<(u32,)>" */
        size_t name = end;
        while (name > path && name_scan_is_identifier(text[name - 1])) name--;
        if (name <= path) continue;
        cut(text, path, name);
        return true;
    }
}

struct choice {
    bool found;
    size_t open, close, generic_depth;
};

/* Whether the bracket that was closed last holds the parameters of the function or of a lambda, and not those of a
 * function type within arguments. */
static bool is_parameter_list(const struct name_scan *scan) {
    for (size_t i = 0; i < scan->depth; i++)
        if (scan->open[i].kind != BRACKET_OTHER) return false;
    return scan->last.kind == BRACKET_ROUND && scan->last.at > 0 &&
           strncmp(scan->text + scan->last.at, "(anonymous namespace)", 21) != 0;
}

/* The bracket whose contents are replaced next: parameters first, since the line number tells overloads apart; then
 * the deepest template arguments, and of those the longest. */
static struct choice choose(const char *text) {
    struct name_scan scan = {.text = text};
    struct choice best = {0};
    bool best_is_round = false;
    for (;;) {
        size_t at = scan.at;
        if (!name_scan_step(&scan)) return best;
        size_t open = scan.last.at, length = at - open - 1;
        if (!scan.closed || length <= WORTH_A_MARK) continue;
        bool is_round = is_parameter_list(&scan);
        if (!is_round && scan.last.kind != BRACKET_GENERIC) continue;
        bool better = is_round != best_is_round                  ? is_round
                      : scan.generic_depth != best.generic_depth ? scan.generic_depth > best.generic_depth
                                                                 : length > best.close - best.open - 1;
        if (best.found && !better) continue;
        best = (struct choice){true, open, at, scan.generic_depth};
        best_is_round = is_round;
    }
}

/* Leaves the beginning of the name, up to a whole character. */
static void cut_off(char *name, const char *mark) {
    size_t length = SHORT_NAME_WIDTH;
    while (length && (name[length] & 0xc0) == 0x80) length--;
    strcpy(name + length, mark);
}

void short_name(char *name, const char *mark) {
    /* What follows takes time in proportion to the square of the length. */
    if (strnlen(name, SHORT_NAME_MOST + 1) > SHORT_NAME_MOST) {
        cut_off(name, mark);
        return;
    }
    if (!name_scan_is_sound(name)) return;
    use_known_names(name);
    while (drop_default(name)) {
    }
    use_char_names(name);
    while (drop_qualified(name)) {
    }
    join_brackets(name);
    drop_return_type(name);
    while (strlen(name) > SHORT_NAME_WIDTH && drop_path_of_trait(name)) {
    }
    while (strlen(name) > SHORT_NAME_WIDTH) {
        struct choice choice = choose(name);
        if (!choice.found) return;
        replace(name, choice.open + 1, choice.close, mark);
    }
}
