#include "view/name_scan.h"

#include <ctype.h>
#include <string.h>

bool name_scan_is_identifier(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* The length of the symbol at `text` that follows the word `operator`. 0 if the operator's name has letters, as in
 * "operator new" and "operator int". Longer symbols are tried first. */
static size_t operator_length(const char *text) {
    static const char *const symbols[] = {"<=>", "<<=", ">>=", "->*", "()", "[]", "->", "<<", ">>",
        "<=", ">=", "==", "!=", "&&", "||", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", "<",
        ">", "=", "+", "-", "*", "/", "%", "^", "&", "|", "~", "!", ","};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (strncmp(text, symbols[i], strlen(symbols[i])) == 0) return strlen(symbols[i]);
    return 0;
}

static bool is_operator(const char *text, size_t at) {
    return strncmp(text + at, "operator", 8) == 0 && !name_scan_is_identifier(text[at + 8]) &&
           (at == 0 || !name_scan_is_identifier(text[at - 1]));
}

static void open_bracket(struct name_scan *scan, enum bracket kind) {
    if (scan->depth == NAME_NESTING_MAX) {
        scan->broken = true;
        return;
    }
    scan->open[scan->depth++] = (struct open_bracket){scan->at, kind};
    scan->generic_depth += kind == BRACKET_GENERIC;
}

static void close_bracket(struct name_scan *scan, char partner) {
    if (scan->depth == 0 || scan->text[scan->open[scan->depth - 1].at] != partner) {
        scan->broken = true;
        return;
    }
    scan->last = scan->open[--scan->depth];
    scan->generic_depth -= scan->last.kind == BRACKET_GENERIC;
    scan->closed = true;
}

static bool is_inside(const struct name_scan *scan, char partner) {
    return scan->depth && scan->text[scan->open[scan->depth - 1].at] == partner;
}

static void step_angle(struct name_scan *scan, char before) {
    if (before == ')' && !scan->after_operator) return; /* a comparison of two values: "((3)<(4))" */
    bool names_type = scan->at == 0 || strchr("<,( &*[", before);
    open_bracket(scan, names_type && !scan->after_operator ? BRACKET_QUALIFIED : BRACKET_GENERIC);
}

bool name_scan_step(struct name_scan *scan) {
    const char *text = scan->text;
    char c = text[scan->at], before = scan->at ? text[scan->at - 1] : 0;
    if (!c || scan->broken) return false;
    scan->closed = false;
    if (is_operator(text, scan->at)) {
        scan->at += 8;
        size_t symbol = operator_length(text + scan->at);
        scan->at += symbol;
        scan->after_operator = symbol > 0;
        return true;
    }
    switch (c) {
    case '<':
        step_angle(scan, before);
        break;
    case '>':
        if (before != '-' && is_inside(scan, '<')) close_bracket(scan, '<');
        break;
    case '(':
        open_bracket(scan, BRACKET_ROUND);
        break;
    case '[':
    case '{':
        open_bracket(scan, BRACKET_OTHER);
        break;
    case ')':
        close_bracket(scan, '(');
        break;
    case ']':
        close_bracket(scan, '[');
        break;
    case '}':
        close_bracket(scan, '{');
        break;
    default:
        break;
    }
    if (c != ' ') scan->after_operator = false;
    scan->at++;
    return !scan->broken;
}

bool name_scan_is_sound(const char *text) {
    struct name_scan scan = {.text = text};
    while (name_scan_step(&scan)) {
    }
    return !scan.broken && scan.depth == 0;
}
